// Reading what a tile's statements name: integers, elements and values.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tiny_compile/loops/parse_value.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Reads less than a line, with what is declared so far.
class ElementParser : protected ValueParser {
 protected:
  static constexpr int64_t kMost = int64_t{1} << 40;  // of a loop, an array or a grid

  ElementParser(const Program& program, std::string_view text, size_t at) : ValueParser(text) {
    program_ = program;
    at_ = at;
    for (size_t b = 0; b < program.buffers.size(); b++)
      buffers_[program.buffers[b].name] = static_cast<int>(b);
    for (const Expr& size : tiny_compile::sizes(program)) sizes_[size.name()] = size;
  }

  // A number from 1 on, or what sizes say: n*3.
  Expr sized(const char* what) {
    skip_blanks();
    const size_t start = at_;
    const Expr found = extent();
    if (found.is_constant() && (found.constant() < 1 || found.constant() > kMost))
      error(start, str(what, " must be in 1..", kMost));
    return found;
  }

  void expect_word(const char* wanted) {
    skip_blanks();
    if (!accept_word(wanted)) error(at_, str("expected '", wanted, "'"));
  }

  void open() {
    expect('{', "this");
    end_line();
    skip_space();
  }

  // --- names ---

  Expr symbol(std::string_view name, size_t position,
              const std::vector<Expr>& limits) const override {
    for (size_t n = names_.size(); n-- > 0;) {
      if (names_[n].name() == name) return names_[n];
    }
    for (size_t k = 0; k < limits.size(); k++) {
      if (name == indirect(k).name) return Expr::index(indirect(k), max(limits[k], 1));
    }
    if (const auto size = sizes_.find(name); size != sizes_.end()) return size->second;
    std::vector<std::string> known;
    for (const Expr& one : names_) known.push_back(one.name());
    error(position, str("no integer '", name, "' is named above", suggestion(name, known)));
  }

  std::string new_name(const char* what) {
    skip_blanks();
    const size_t start = at_;
    const std::string name = identifier(what);
    constexpr std::string_view kTaken =
        " array shared cluster l1 l2 memory kept for if else prefetch store stream tree load "
        "index philox min max send await barrier divisor shortcut cluster_barrier "
        "cluster_start update votes ";
    const bool taken = kTaken.find(" " + name + " ") != kTaken.npos || register_of(name) ||
                       name.find('.') != std::string::npos;
    if (taken) error(start, str("'", name, "' means something else in a tile"));
    return name;
  }

  Expr new_integer(const std::string& name, const Expr& extent) {
    return names_.emplace_back(Expr::index(name, extent));
  }

  Expr index(const std::vector<Expr>& limits = {}) {
    return parse_expr(text_, at_, [&](std::string_view name, size_t position) {
      return symbol(name, position, limits);
    });
  }

  // --- arrays ---

  bool at_array() {
    const size_t start = at_;
    const bool found = arrays_.count(word()) > 0 && accept('[');
    at_ = start;
    return found;
  }

  // t0[p + 2]
  std::pair<int, Expr> element(const std::vector<Expr>& limits = {}) {
    const int array = look_up(arrays_, "array");
    expect('[', "the array");
    const Expr place = index(limits);
    expect(']', "the index");
    return {array, place};
  }

  std::pair<int, Expr> in_memory(const std::vector<Expr>& limits = {}) {
    const int source = buffer();
    expect('[', "the buffer");
    const Expr place = index(limits);
    expect(']', "the index");
    return {source, place};
  }

  int width(int64_t most = 16) {  // x4
    skip_blanks();
    if (!next_is('x')) return 1;
    at_++;
    return static_cast<int>(bounded(1, most, "a vector's width"));
  }

  // --- values by their labels ---

  int bound(int64_t label) const {
    const auto known = values_.find(label);
    return known == values_.end() ? -1 : known->second;
  }

  bool is_value_of_its_own() {
    const size_t start = at_;
    const std::string_view first = word();
    at_ = start;
    return !register_of(first) && !dtype_from(first);
  }

  int votes(int64_t label, int before) {
    const int holds = value(), id = add_votes(tile_, holds, accept_word("below"));
    const bool is_same = before >= 0 && kernel_->scalars[before] == kernel_->scalars[id];
    return is_same ? before : values_[label] = id;
  }

  // The scalar that a line gives the label: the one that it has, if the line says the same.
  int said(int64_t label, int before) {
    skip_blanks();
    const size_t start = at_;
    std::vector<Scalar>& scalars = kernel_->scalars;
    const bool is_name = next_is('$') || !is_value_of_its_own();
    if (is_name) error(start, "expected an op, load, index, philox or an element of an array");
    const int id = value();
    if (before >= 0 && scalars[before] == scalars[id]) return before;
    scalars.push_back(Scalar(scalars[id]));
    return values_[label] = static_cast<int>(scalars.size()) - 1;
  }

  Tile tile_;
  Names arrays_;
  std::vector<Expr> names_;  // integers that are known here, the latest last
};

}  // namespace tiny_compile
