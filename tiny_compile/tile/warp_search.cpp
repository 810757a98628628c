// Each lane asks for the last place of a 32nd of what is left; then a 32nd is left, and less by one:
//
//   low .. high = 0 .. 1000   step 32: lane 0 asks for 31, lane 1 for 63, ..   9 lanes pass
//               288 .. 319    step 1:  lane 0 asks for 288, ..                 7 lanes pass:  295
#include "tiny_compile/tile/warp_search.h"

#include "tiny_compile/base/integer.h"
#include "tiny_compile/tile/accumulator.h"

namespace tiny_compile {
namespace {

// Until none of `range` places is left.
int64_t rounds_of(int64_t range) {
  int64_t rounds = 0;
  for (int64_t left = range; left > 0; left = ceil_divide(left, kLanes) - 1) rounds++;
  return rounds;
}

}  // namespace

int first_that_fails(Tile& tile, Body& body, DType integer, int low, int high, int64_t range,
                     const std::function<int(Body&, int place)>& passes) {
  const auto own = [&](const char* name) { return add_array(tile, {name, integer, 1}); };
  const int lows = own("low"), highs = own("high");
  body.push_back(set(lows, 0, low));
  body.push_back(set(highs, 0, high));
  Body round;
  const auto make = [&](Op op, std::vector<int> operands) {
    return computed(tile, round, op, integer, std::move(operands));
  };
  const auto read = [&](int array) { return read_element(tile, round, array, 0); };
  const auto number = [&](int64_t value) {
    return add_constant(tile, Literal::of_integer(integer, value));
  };
  const int from = read(lows), to = read(highs),
            all = make(Op::add, {make(Op::sub, {to, from}), number(kLanes - 1)}),
            step = make(Op::shift_right, {all, number(log2_of(kLanes))}),
            last = make(Op::sub, {to, number(1)});
  const auto behind = [&](int steps) {  // the last place of so many steps
    const int ahead = make(Op::mul, {steps, step});
    return make(Op::sub, {make(Op::add, {from, ahead}), number(1)});
  };
  const int lane = as_data(tile, round, lane_of_warp() + 1, integer),
            at = make(Op::minimum, {behind(lane), last}), passes_here = passes(round, at);
  const int votes = add_votes(tile, passes_here, false);
  round.push_back(define(votes));
  const int count = integer == DType::i32 ? votes : make(Op::cast, {votes}),
            goes = computed(tile, round, Op::lt, DType::boolean, {from, to}),
            next = behind(make(Op::add, {count, number(1)})),
            begin = make(Op::add, {from, make(Op::mul, {count, step})});
  const auto narrow = [&](int array, int now, int before) {
    const int least = make(Op::minimum, {now, to});
    round.push_back(set(array, 0, make(Op::where, {goes, least, before})));
  };
  narrow(lows, begin, from);
  narrow(highs, next, to);
  body.push_back(for_each("round", rounds_of(range), false, std::move(round)));
  return lows;
}

}  // namespace tiny_compile
