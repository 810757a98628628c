// Reading statements that move elements between values, arrays and memory, or add them up.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tiny_compile/tile/parse_head.h"

namespace tiny_compile {

// Each behind the word that it begins with.
class MoveParser : protected HeadParser {
 protected:
  static constexpr int64_t kMostAhead = 1 << 20;

  using HeadParser::HeadParser;

  Statement set_or_load() {
    const auto [array, place] = element();
    expect('=', "the element");
    if (!accept_word("load")) return set(array, place, value());
    skip_blanks();
    const int load = next_is('$') ? value() : -1;  // whose at0, at1, ... these are
    if (load >= 0) expect(':', "the load that data chooses places for");
    const auto [source, from] =
        in_memory(load < 0 ? std::vector<Expr>() : kernel_->scalars[load].limits);
    Statement read = load_vector(array, place, source, from, width());
    read.value = load;
    read.left = left();
    return read;
  }

  Statement ask_prefetch() {
    const auto [source, from] = in_memory();
    Statement ask = ahead_of(source, from, width(kMostAhead));
    ask.left = left();
    return ask;
  }

  Statement send_one() {
    const auto [array, place] = element();
    expect('=', "the element");
    return send(array, place, value());
  }

  Statement store_one_or_many() {
    const auto [target, to] = in_memory();
    const int many = width();
    const Expr there = left();
    expect('=', "the place");
    if (!at_array()) {
      if (many > 1) error(at_, "expected the array whose neighbours are stored");
      return store(target, to, value());
    }
    const auto [array, place] = element();
    Statement all = store_vector(target, to, array, place, many);
    all.left = there;
    return all;
  }

  Statement reduce_array() {
    Names ops;
    for (Op op : tree_reductions()) ops[std::string(info(op).name)] = static_cast<int>(op);
    const Op op = static_cast<Op>(look_up(ops, "reduction"));
    const int array = look_up(arrays_, "array");
    expect_word("x");
    return tree_over(op, array, index());
  }

  // update scatter_add $3 < 50: y[at0*4 + i1] = $2
  // update scatter_add $3 < 50: shared sums[at0] = $2
  // update scatter: y[target*4] = $2
  // update scatter_add places x 1024 < 50: y[at0*768 + start] = values x64 of stop - start
  Statement update_one_or_many() {
    Names ops;
    for (int op = 0; op < kOpCount; op++)
      if (is_scatter(static_cast<Op>(op)))
        ops[std::string(info(static_cast<Op>(op)).name)] = op;
    Statement s = update(static_cast<Op>(look_up(ops, "scatter")), -1, {}, {}, -1, -1);
    skip_blanks();
    if (accept(':')) {
      std::tie(s.buffer, s.index) = in_memory();
      expect('=', "the place");
      return s.value = value(), s;
    }
    const bool is_one = next_is('$') || !is_value_of_its_own();
    s.chosen = is_one ? value() : look_up(arrays_, "array");
    if (!is_one) {
      s.kind = StatementKind::UpdateAll;
      expect_word("x");
      s.left = index();
    }
    expect('<', "what chooses the place");
    s.place = index();
    expect(':', "the places that there are");
    if (is_one && accept_word("shared"))
      std::tie(s.array, s.index) = element({s.place});
    else
      std::tie(s.buffer, s.index) = in_memory({s.place});
    expect('=', "the place");
    if (is_one) return s.value = value(), s;
    s.array = look_up(arrays_, "array");
    s.width = width(kMostAhead);
    expect_word("of");
    s.from = index();
    return s;
  }

  Statement stream_block() {
    const auto [target, to] = in_memory();
    expect_word("x");
    const Expr count = index();
    expect('=', "the number of elements");
    return stream(target, to, look_up(arrays_, "array"), count);
  }

  Expr left() { return accept_word("of") ? index() : Expr(0); }
};

}  // namespace tiny_compile
