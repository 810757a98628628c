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
//
// sum_exp takes a chunk's largest first, then the sum of exponentials against it, and brings the
// chunks' sums to the largest of all. A lane keeps what the turn of its number gave, so that the
// turns' bits are lanes' in the end.
#include "tiny_compile/tile/reduce.h"

#include <algorithm>
#include <deque>
#include <functional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/tile/exchange.h"

namespace tiny_compile {
namespace {

constexpr int kDigit = 10;             // bits of a chunk's index
constexpr int64_t kMostHastened = 32;  // exponentials of a thread

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

bool is_of_others(const Bit& bit) {
  return bit.level == Level::Warp || bit.level == Level::Cluster;
}

// Goes over bits in order; `live` results of a thread are left, times `rows`.
class Reducer {
 public:
  Reducer(Tile& tile, const Accumulator& all, int64_t live, int64_t rows, int64_t turns)
      : tile_(tile), all_(all), live_(live), rows_(rows), turns_(turns) {}

  void over(const std::vector<Bit>& bits, size_t from, size_t to) {
    own_ = static_cast<size_t>(std::count_if(bits.begin() + from, bits.begin() + to,
                                             [](const Bit& b) { return is_own(b.level); }));
    while (from < to) {
      size_t end = from + 1;  // bits of one level in a row; of warps' numbers, neighbours
      while (end < to && joins(bits[end - 1], bits[end])) end++;
      const std::vector<Bit> run(bits.begin() + from, bits.begin() + end);
      switch (run[0].level) {
        case Level::Warp:
        case Level::Cluster:
          end = end_of_others(bits, from, end, to);
          append(text(), exchanged(tile_, exchange_of(bits, from, end)));
          break;
        case Level::Serial: over_turns(static_cast<int>(run.size())); break;
        case Level::Lane:
          for (const Bit& bit : run) over_lane(static_cast<int>(bit.step));
          break;
        default:
          for (size_t b = 0; b < run.size(); b++) over_own();
      }
      from = end;
    }
  }

  int64_t live() const { return live_; }
  Reduced result;

 private:
  Body& text() { return turns_ > 1 ? result.in_turn : result.after; }

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
  size_t end_of_others(const std::vector<Bit>& bits, size_t from, size_t end, size_t to) const {
    size_t later = end;
    while (later < to && is_of_others(bits[later]) &&
           (later == end || joins(bits[later - 1], bits[later])))
      later++;
    const bool is_one = later > end && sends(tile_, exchange_of(bits, from, later));
    return is_one ? later : end;
  }

  void over_turns(int bits) {
    const Expr turn = Expr::index("turn", turns_);
    const int64_t size = live_ * rows_;
    if (is_exact(all_)) {
      const Accumulator so_far = like(tile_, all_, "all", size, Space::Register);
      append(result.before,
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
  size_t own_ = 0;              // own bits that are still to come
  std::deque<int> given_away_;  // lanes' steps that stand for the first of them
};

// value = clamped to finite
int clamped(Tile& tile, Body& body, int value, DType dtype) {
  const double most = dtype == DType::f64 ? 0x1.fffffffffffffp+1023 : double{0x1.fffffep+127f};
  for (const auto& [op, limit] :
       {std::pair{Op::maximum, -most}, std::pair{Op::minimum, most}}) {
    value = add_apply(tile, op, dtype, {value, add_constant(tile, Literal::of(dtype, limit))});
    body.push_back(define(value));
  }
  return value;
}

Body clamp_all(Tile& tile, const Accumulator& all, int64_t size) {
  return each("p", size, [&](const Expr& p) {
    const int value = add_element(tile, all.values, p);
    Body body = {define(value)};
    const int clear = clamped(tile, body, value, all.dtype);
    body.push_back(set(all.values, p, clear));
    return body;
  });
}

// to[p] = exp(values[p] - largest[q]), or scaled by that: values[p] * exp(most[p] - largest[q])
Body exponentials(Tile& tile, const Accumulator& all, const Expr& p, int largest, const Expr& q,
                  int most, int to) {
  const DType dtype = all.dtype;
  const int value = add_element(tile, all.values, p), against = add_element(tile, largest, q),
            what = most < 0 ? value : add_element(tile, most, p),
            less = add_apply(tile, Op::sub, dtype, {what, against}),
            exp = add_apply(tile, Op::exp, dtype, {less}),
            result = most < 0 ? exp : add_apply(tile, Op::mul, dtype, {value, exp});
  Body body = {define(value), define(against)};
  if (most >= 0) body.push_back(define(what));
  append(body, {define(less), define(exp)});
  if (most >= 0) body.push_back(define(result));
  body.push_back(set(to, p, result));
  return body;
}

// Where neighbouring lanes share a row, exponentials go by shortcuts, some at a time; a thread of a column, and
// one of many values, has no registers for them.
bool hastens(const Share& share, int64_t size) {
  return size <= kMostHastened &&
         std::any_of(share.bits.begin(), share.bits.end(),
                     [](const Bit& bit) { return bit.level == Level::Lane && bit.step == 1; });
}

// The first ones of a row, of `size` values against `chunks` largest.
Body first_exponentials(Tile& tile, const Accumulator& all, int64_t size, int largest,
                        int64_t chunks) {
  return each("p", size, [&](const Expr& p) {
    return exponentials(tile, all, p, largest, mod(p, chunks), -1, all.values);
  });
}

// Of two `halves` the upper is added to the lower as they come, which leaves fewer to hold.
Body hastened_exponentials(Tile& tile, const Accumulator& all, int64_t size, int largest,
                           int64_t chunks, int64_t halves) {
  const int64_t some = std::min(size, kHastened), half = size / halves;
  const Accumulator powers = like(tile, all, "power", size, Space::Register);
  Body body = each("s", size / some, [&](const Expr& s) {
    const auto at = [&](const Expr& g) { return g + s * (some / halves); };
    Body powered = each("g", some / halves, [&](const Expr& g) {
      return each("h", halves, [&](const Expr& h) {
        const Expr p = at(g) + h * half;
        return exponentials(tile, all, p, largest, mod(p, chunks), -1, powers.values);
      });
    });
    powered = {shortcut(std::move(powered))};
    if (halves > 1)
      append(powered, each("g", some / halves, [&](const Expr& g) {
               return combine(tile, powers, at(g), powers, at(g) + half);
             }));
    return powered;
  });
  append(body, each("p", half, [&](const Expr& p) { return copy(tile, all, p, powers, p); }));
  return body;
}

// At the end of each turn a lane keeps what the turn of its own number gave; behind the last, `all`
// is what it has kept.
void keep_in_lanes(Tile& tile, const Accumulator& all, int64_t size, int64_t turns,
                   Reduced& reduced) {
  const Accumulator kept = like(tile, all, "kept", size, Space::Register);
  append(
      reduced.in_turn,
      {if_less(Expr::index("turn", turns), mod(lane_of_warp(), turns) + 1,
               each("p", size, [&](const Expr& p) { return copy(tile, kept, p, all, p); }))});
  append(reduced.after,
         each("p", size, [&](const Expr& p) { return copy(tile, all, p, kept, p); }));
}

// The turns' bits as the lanes' that keep what they gave.
std::vector<Bit> with_lanes_for_turns(std::vector<Bit> bits) {
  int64_t step = 1;
  for (Bit& bit : bits) {
    if (bit.level != Level::Serial) continue;
    bit.level = Level::Lane, bit.step = step;
    step *= 2;
  }
  return bits;
}

Reduced reduce_exponentials(Tile& tile, const Share& share, const Accumulator& all,
                            int64_t rows) {
  const size_t count = share.bits.size(), chunk = std::min<size_t>(kDigit, count);
  const int64_t live = share.registers * share.vector;
  Accumulator top = like(tile, all, "top", live * rows, Space::Register);
  top.op = Op::max;
  const bool hastened = hastens(share, live * rows);
  const int64_t halves = hastened && live > 1 && is_own(share.bits[0].level) ? 2 : 1;
  Reducer largest(tile, top, live, rows, 1), sum(tile, all, live / halves, rows, 1);
  Body& body = sum.result.after;
  append(body,
         each("p", live * rows, [&](const Expr& p) { return copy(tile, top, p, all, p); }));
  largest.over(share.bits, 0, chunk);
  append(body, std::move(largest.result.after));
  const int64_t chunks = largest.live() * rows;
  append(body, clamp_all(tile, top, chunks));
  append(body, hastened
                   ? hastened_exponentials(tile, all, live * rows, top.values, chunks, halves)
                   : first_exponentials(tile, all, live * rows, top.values, chunks));
  sum.over(share.bits, halves - 1, chunk);
  if (chunk == count) return sum.result;
  if (share.turns > 1) {
    std::swap(sum.result.in_turn, body);
    keep_in_lanes(tile, all, chunks, share.turns, sum.result);
    keep_in_lanes(tile, top, chunks, share.turns, sum.result);
  }
  const std::vector<Bit> bits = with_lanes_for_turns(share.bits);
  const Accumulator most = like(tile, top, "most", chunks, Space::Register);
  append(body, each("p", chunks, [&](const Expr& p) { return copy(tile, most, p, top, p); }));
  Reducer over_all(tile, top, largest.live(), rows, 1);
  over_all.over(bits, chunk, count);
  append(body, std::move(over_all.result.after));
  append(body, each("p", chunks, [&](const Expr& p) {
           return exponentials(tile, all, p, top.values, mod(p, rows), most.values, all.values);
         }));
  sum.over(bits, chunk, count);
  return sum.result;
}

}  // namespace

std::vector<Bit> order_of(const Accumulator& all, std::vector<Bit> bits) {
  const auto rank = [](const Bit& bit) {
    return is_own(bit.level)            ? 0
           : bit.level == Level::Serial ? 1
           : bit.level == Level::Lane   ? 2
           : bit.level == Level::Warp   ? 3
                                        : 4;
  };
  if (is_exact(all))
    std::stable_sort(bits.begin(), bits.end(),
                     [&](const Bit& a, const Bit& b) { return rank(a) < rank(b); });
  return bits;
}

Reduced reduce(Tile& tile, const Share& share, const Accumulator& all, int64_t rows) {
  if (all.op == Op::sum_exp) return reduce_exponentials(tile, share, all, rows);
  Reducer reducer(tile, all, share.registers * share.vector, rows, share.turns);
  const std::vector<Bit> bits = order_of(all, share.bits);
  reducer.over(bits, 0, bits.size());
  return std::move(reducer.result);
}

}  // namespace tiny_compile
