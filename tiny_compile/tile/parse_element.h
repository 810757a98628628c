// Reading what a tile's statements name: the head above them, arrays, integers and elements.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tiny_compile/loops/parse_value.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Reads a tile's head and arrays, names and elements, with what is declared so far.
class ElementParser : protected ValueParser {
 protected:
  static constexpr int64_t kMost = int64_t{1} << 40;  // of a loop, an array or a grid
  static constexpr int64_t kMostTogether = 1 << 10;   // units

  ElementParser(const Program& program, std::string_view text, size_t at) : ValueParser(text) {
    program_ = program;
    at_ = at;
    for (size_t b = 0; b < program.buffers.size(); b++)
      buffers_[program.buffers[b].name] = static_cast<int>(b);
    for (const Expr& size : tiny_compile::sizes(program)) sizes_[size.name()] = size;
    for (size_t k = 0; k < program.kernels.size(); k++)
      kernels_[program.kernels[k].name] = static_cast<int>(k);
  }

  void parse_head() {
    if (!accept_word("tile"))
      error(at_, "a tile starts with: tile KERNEL grid 4 block 1 warps {");
    number_ = look_up(kernels_, "kernel");
    tile_.kernel = program_.kernels[number_];
    if (accept_word("for")) {
      const size_t start = at_;
      const std::vector<SizeRange> when = ranges();
      const std::vector<SizedSchedule>& all = tile_.kernel.sized;
      const auto own = std::find_if(all.begin(), all.end(),
                                    [&](const SizedSchedule& one) { return one.when == when; });
      if (own == all.end()) error(start, "its kernel has no schedule for these sizes");
      sized_ = static_cast<int>(own - all.begin());
      program_ = for_sizes(program_, tile_.kernel, static_cast<size_t>(sized_));
      tile_.kernel = program_.kernels[0];
    }
    for (const Expr& size : tiny_compile::sizes(program_)) sizes_[size.name()] = size;
    own_scalars_ = tile_.kernel.scalars.size();
    kernel_ = &tile_.kernel;
    for (size_t id = 0; id < kernel_->scalars.size(); id++)
      values_[static_cast<int64_t>(id)] = static_cast<int>(id);
    if (program_.target == Target::Cpp)
      parse_units();
    else
      parse_grid();
    open();
    names_ = given(tile_);
  }

  void parse_units() {
    expect_word("units");
    skip_blanks();
    const size_t start = at_;
    tile_.units = extent();
    if (!is_on_cpu(tile_)) error(start, "a tile of no units");
    if (accept_word("grain")) tile_.grain = extent();
    if (accept_word("together"))
      tile_.together = static_cast<int>(bounded(1, kMostTogether, "units that go together"));
  }

  void parse_grid() {
    expect_word("grid"), tile_.grid = sized("a grid");
    if (accept_word("cluster"))
      tile_.cluster = static_cast<int>(bounded(1, 16, "a cluster's blocks"));
    expect_word("block"), tile_.warps = static_cast<int>(bounded(1, 32, "a block's warps"));
    expect_word("warps");
    if (accept_word("resident"))
      tile_.resident = static_cast<int>(bounded(1, 32, "the number of resident blocks"));
    tile_.alone = accept_word("alone");
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

  bool parse_array() {
    Array array;
    array.space = accept_word("shared")    ? Space::Shared
                  : accept_word("cluster") ? Space::Cluster
                  : accept_word("l1")      ? Space::L1
                  : accept_word("l2")      ? Space::L2
                  : accept_word("memory")  ? Space::Memory
                  : accept_word("kept")    ? Space::Kept
                                           : Space::Register;
    if (array.space == Space::Register && !accept_word("array")) return false;
    array.name = new_name("the array's name");
    const int id = static_cast<int>(tile_.arrays.size());
    if (!arrays_.emplace(array.name, id).second)
      error(at_ - array.name.size(), "a second array of this name");
    expect(':', "the array's name");
    array.dtype = dtype();
    expect('[', "the dtype");
    const char* const what = "an array's size";
    array.size = array.space == Space::Memory ? sized(what) : Expr(bounded(1, kMost, what));
    expect(']', "the size");
    array.packed = accept_word("packed");
    end_line();
    tile_.arrays.push_back(std::move(array));
    return true;
  }

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

  int width(int64_t most = 16) {  // x4
    skip_blanks();
    if (!next_is('x')) return 1;
    at_++;
    return static_cast<int>(bounded(1, most, "a vector's width"));
  }

  int number_ = -1;  // of the kernel
  int sized_ = -1;   // of its schedules for some sizes
  size_t own_scalars_ = 0;
  Tile tile_;
  Names kernels_, arrays_;
  std::vector<Expr> names_;  // integers that are known here, the latest last
};

}  // namespace tiny_compile
