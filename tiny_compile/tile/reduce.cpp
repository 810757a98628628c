// In which order are the parts of a row added? The contract's: in each digit of 1024 the upper half
// to the lower, then the upper quarter, ... A layout says who holds which bit, and whoever owns the
// next bit adds:
//
//   loop register 4 · warp 2 · lane 32
//   =>  for p < 2: t[p] = t[p] + t[p + 2]              a register's bit: within the thread
//       t[0] = t[0] + t[1]
//       given[..] = t[0]; barrier; t[0] = u[0] + u[1]  a warp's or block's: by way of shared memory
//       t[0] = t[0] + t[0] of lane ^ 16, ^ 8, ..       a lane's: a shuffle
//
// Of two results that lanes have to add, one lane adds the first and the other the second: half
// as many shuffles. The bit that told the two apart is then the lanes'.
//
//   loop lane 32 · vector 2
//   =>  s[0] = lane & 16 ? t[0] : t[1];  t[0] = (lane & 16 ? t[1] : t[0]) + s[0] of lane ^ 16
//       t[0] = t[0] + t[0] of lane ^ 8, ..;  t[0] = t[0] + t[0] of lane ^ 16, the vector's bit
//
// A turn's bit is added when its other half has come: turns are in bit-reversed order, and
// held[b] waits for the half above bit b. Operations that are exact take bits in the order of
// least work: a thread's own, turns as they come, lanes, warps.
#include "tiny_compile/tile/reduce.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <tuple>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/tile/exchange.h"

namespace tiny_compile {
namespace {

// The lanes of a 0 bit keep the lower half of twice `half` elements, those of a 1 bit the upper half,
// each with what the others have of it added.
Body swap_halves(Tile& tile, const Accumulator& all, int64_t half, int step) {
  const Accumulator sent = like(tile, all, "sent", half, Space::Register);
  const int bit = add_index(tile, mod(floor_div(lane_of_warp(), step), 2)),
            one = add_constant(tile, Literal::of_integer(DType::i64, 1)),
            lower = add_apply(tile, Op::lt, DType::boolean, {bit, one});
  Body body = {define(bit), define(lower)};
  append(body, each("p", half, [&](const Expr& p) {
           const int low = add_element(tile, all.values, p),
                     high = add_element(tile, all.values, p + half),
                     mine = add_apply(tile, Op::where, all.dtype, {lower, low, high}),
                     theirs = add_apply(tile, Op::where, all.dtype, {lower, high, low});
           return Body{define(low),
                       define(high),
                       define(mine),
                       define(theirs),
                       set(all.values, p, mine),
                       set(sent.values, p, theirs)};
         }));
  append(body,
         each("p", half, [&](const Expr& p) { return combine(tile, all, p, sent, p, step); }));
  return body;
}

bool is_of_others(const Bit& bit) { return combined_by(bit.level) == CombinedBy::Exchange; }

// Goes over bits in order; `live` results of a thread are left, times `rows`.
class Reducer {
 public:
  Reducer(Tile& tile, const Accumulator& all, int64_t live, int64_t rows, int64_t turns)
      : tile_(tile), all_(all), live_(live), rows_(rows), turns_(turns) {}

  Reduced over(const std::vector<Bit>& bits) {
    own_ = static_cast<size_t>(
        std::count_if(bits.begin(), bits.end(), [](const Bit& b) { return is_own(b.level); }));
    const size_t to = bits.size();
    for (size_t from = 0; from < to;) {
      size_t end = from + 1;  // bits of one level in a row; of warps' numbers, neighbours
      while (end < to && joins(bits[end - 1], bits[end])) end++;
      const std::vector<Bit> run(bits.begin() + from, bits.begin() + end);
      switch (combined_by(run[0].level)) {
        case CombinedBy::Exchange:
          end = end_of_others(bits, from, end);
          exchange(exchange_of(bits, from, end));
          break;
        case CombinedBy::Turns: over_turns(static_cast<int>(run.size())); break;
        case CombinedBy::Shuffle:
          for (const Bit& bit : run) over_lane(static_cast<int>(bit.step));
          break;
        case CombinedBy::Thread:
          for (size_t b = 0; b < run.size(); b++) over_own();
          break;
        case CombinedBy::Nothing: CHECK(false, "a reduction over ", name_of(run[0].level));
      }
      from = end;
    }
    result_.live = live_;
    return std::move(result_);
  }

 private:
  Body& text() { return turns_ > 1 ? result_.in_turn : result_.after.back(); }

  void exchange(const Exchange& with_others) {
    Exchanged parts = exchanged(tile_, with_others);
    append(text(), std::move(parts.give));
    if (turns_ > 1)
      append(text(), std::move(parts.wait));
    else
      result_.waits.push_back(std::move(parts.wait)), result_.after.emplace_back();
    append(text(), std::move(parts.take));
  }

  // The thread's own, unless lanes have taken it for one of theirs.
  void over_own() {
    own_--;
    if (!given_away_.empty()) {
      const int step = given_away_.front();
      given_away_.pop_front();
      return combine_lanes(step);
    }
    live_ /= 2;
    append(text(), each("p", live_ * rows_, [&](const Expr& p) {
             return combine(tile_, all_, p, all_, p + live_ * rows_);
           }));
  }

  void over_lane(int step) {
    if (given_away_.size() == own_ || all_.places >= 0) return combine_lanes(step);
    live_ /= 2;
    given_away_.push_back(step);
    append(text(), swap_halves(tile_, all_, live_ * rows_, step));
  }

  void combine_lanes(int step) {
    append(text(), each("p", live_ * rows_,
                        [&](const Expr& p) { return combine(tile_, all_, p, all_, p, step); }));
  }

  // Those that have the bits of a run; of both warps and blocks, where all the cluster's are there.
  Parts parts_of(const std::vector<Bit>& run) const {
    Parts parts;
    parts.blocks_first = run[0].level == Level::Cluster;
    for (const Bit& bit : run) {
      const bool of_blocks = bit.level == Level::Cluster;
      (of_blocks ? parts.blocks : parts.warps) *= 2;
      (of_blocks ? parts.block_step : parts.warp_step) = bit.step;  // the lowest is the last
    }
    parts.warps = std::min(parts.warps, tile_.warps / parts.warp_step);
    return parts;
  }

  Exchange exchange_of(const std::vector<Bit>& bits, size_t from, size_t end) const {
    const std::vector<Bit> run(bits.begin() + static_cast<std::ptrdiff_t>(from),
                               bits.begin() + static_cast<std::ptrdiff_t>(end));
    return {all_, live_ * rows_, parts_of(run), lanes_agree(bits, end), turns_ > 1};
  }

  // The end of a run of warps' bits, or of blocks': with those of the others that follow, where they can be
  // sent as one.
  size_t end_of_others(const std::vector<Bit>& bits, size_t from, size_t end) const {
    size_t later = end;
    while (later < bits.size() && is_of_others(bits[later]) &&
           (later == end || joins(bits[later - 1], bits[later])))
      later++;
    if (later == end) return end;
    const Exchange both = exchange_of(bits, from, later);
    const bool is_whole =
        !both.parts.blocks_first || both.parts.warps == power_of_two_from(both.parts.warps);
    return is_whole && sends(tile_, both) ? later : end;
  }

  void over_turns(int bits) {
    const Expr turn = Expr::index("turn", turns_);
    const int64_t size = live_ * rows_;
    if (is_exact(all_)) {
      const Accumulator so_far = like(tile_, all_, "all", size, Space::Register);
      append(result_.before,
             each("p", size, [&](const Expr& p) { return set_identity(tile_, so_far, p); }));
      append(text(), each("p", size,
                          [&](const Expr& p) { return combine(tile_, so_far, p, all_, p); }));
      turns_ = 1;
      append(text(),
             each("p", size, [&](const Expr& p) { return copy(tile_, all_, p, so_far, p); }));
      return;
    }
    const Accumulator held = like(tile_, all_, "held", bits * size, Space::Register);
    for (int b = 0; b < bits; b++) append(text(), carry(turn, b, held, size));
    turns_ = 1;
  }

  // At the turns whose lower bits are all 1: bit b is 0, and the result waits; or it is 1, and
  // what has waited is added.
  Body carry(const Expr& turn, int b, const Accumulator& held, int64_t size) {
    const int64_t bit = int64_t{1} << b;
    const Expr value = mod(floor_div(turn, bit), 2);
    Body wait = each("p", size,
                     [&](const Expr& p) { return copy(tile_, held, p + b * size, all_, p); });
    Body add = each("p", size,
                    [&](const Expr& p) { return combine(tile_, all_, p, held, p + b * size); });
    Body both = {if_less(value, 1, std::move(wait)), if_less(0, value, std::move(add))};
    if (b == 0) return both;
    return {if_less(bit - 2, mod(turn, bit), std::move(both))};
  }

  Tile& tile_;
  const Accumulator all_;
  int64_t live_;
  const int64_t rows_;
  int64_t turns_;
  Reduced result_;
  size_t own_ = 0;              // own bits that are still to come
  std::deque<int> given_away_;  // lanes' steps that stand for the first of them
};

}  // namespace

std::vector<Bit> order_of(const Accumulator& all, std::vector<Bit> bits) {
  // What is cheap comes first, and warps before blocks. Of both the highest bit of their number first, so that
  // one exchange has all of them.
  const auto key = [](const Bit& bit) {
    const bool is_exchanged = is_of_others(bit);
    return std::tuple(combined_by(bit.level), is_exchanged ? -static_cast<int>(bit.level) : 0,
                      is_exchanged ? -bit.step : 0);
  };
  if (is_exact(all))
    std::stable_sort(bits.begin(), bits.end(),
                     [&](const Bit& a, const Bit& b) { return key(a) < key(b); });
  return bits;
}

Reduced reduce_bits(Tile& tile, const Accumulator& all, const std::vector<Bit>& bits,
                    int64_t live, int64_t rows, int64_t turns) {
  return Reducer(tile, all, live, rows, turns).over(bits);
}

Reduced reduce(Tile& tile, const Share& share, const Accumulator& all, int64_t rows) {
  return reduce_bits(tile, all, order_of(all, share.bits), share.registers * share.vector, rows,
                     share.turns);
}

}  // namespace tiny_compile
