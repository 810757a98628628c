// sum_exp takes a chunk's largest first, then the sum of exponentials against it. All threads of a row
// come to know both of each chunk, whoever had it, and each for itself brings the sums to the largest
// of all and adds them up:
//
//   loop serial 4 · warp 4 · register 32 · lane 32
//   =>  for turn < 4 { ...; if lane < 1 { given_top[turn*4 + warp] = top[0]; given[..] = t[0] } }
//       barrier
//       u_top[0] = given_top[lane%16]; u[0] = given[lane%16]      a lane has a chunk
//       against[0] = u_top[0];  u_top[0] = the largest of all lanes'
//       u[0] = u[0] * exp(against[0] - u_top[0]);  u[0] = u[0] + u[0] of lane ^ 8, ^ 4, ^ 2, ^ 1
//
// Each largest is clamped to what is finite before anything is against it. Blocks of a cluster send
// what they have to all of them.
#include "tiny_compile/tile/exponentials.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/tile/exchange.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostHastened = 32;  // exponentials of a thread
constexpr int64_t kFewParts = 4;       // that a thread reads

// to[p] = top[p], clamped
Body clamp_all(Tile& tile, const Accumulator& to, const Accumulator& top, int64_t size) {
  return each("p", size, [&](const Expr& p) {
    const int value = add_element(tile, top.values, p);
    Body body = {define(value)};
    const int clear = clamped(tile, body, value, top.dtype);
    body.push_back(set(to.values, p, clear));
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

// Where neighbouring lanes share a row; a thread of a column, and one of many values, has no
// registers for two ways.
bool hastens(const Share& share, const Accumulator& all, int64_t size) {
  return all.dtype == DType::f32 && size <= kMostHastened &&
         std::any_of(share.bits.begin(), share.bits.end(),
                     [](const Bit& bit) { return bit.level == Level::Lane && bit.step == 1; });
}

// Whether some of a thread's registers have an element for no thread.
bool has_idle_registers(const Share& share) {
  int64_t last = 0;
  for (const Bit& bit : share.bits) last += is_own(bit.level) ? bit.stride : 0;
  return share.count.is_constant() && last >= share.count.constant();
}

// The first ones, of `size` values of so many rows against `chunks` largest: exp(-inf) = 0 where no element is.
Body first_exponentials(Tile& tile, const Share& share, const Accumulator& all, int64_t rows,
                        const Accumulator& largest, int64_t chunks) {
  const bool is_idle = has_idle_registers(share);
  return each("p", share.registers * share.vector * rows, [&](const Expr& p) {
    Body powers = exponentials(tile, all, p, largest.values, mod(p, chunks), -1, all.values);
    if (!is_idle) return powers;
    const int none = add_constant(tile, Literal::of(all.dtype, 0));
    return Body{if_less(share.place(floor_div(p, rows)), share.count, std::move(powers)),
                otherwise({set(all.values, p, none)})};
  });
}

// The highest exponent: 0, unless a largest had to be clamped.
int highest_exponent(Tile& tile, Body& body, const Accumulator& top, const Accumulator& largest,
                     int64_t chunks) {
  int highest = -1;
  for (int64_t c = 0; c < chunks; c++) {
    const int most = add_element(tile, top.values, c),
              against = add_element(tile, largest.values, c),
              less = add_apply(tile, Op::sub, top.dtype, {most, against});
    append(body, {define(most), define(against), define(less)});
    const bool is_first = highest < 0;
    highest = is_first ? less : add_apply(tile, Op::maximum, top.dtype, {highest, less});
    if (!is_first) body.push_back(define(highest));
  }
  return highest;
}

// A thread's own halves, as far as they come first.
Reduced add_own(Tile& tile, const Accumulator& sums, std::vector<Bit>& bits, int64_t live,
                int64_t rows) {
  const auto other =
      std::find_if(bits.begin(), bits.end(), [](const Bit& b) { return !is_own(b.level); });
  Reduced own = reduce_bits(tile, sums, {bits.begin(), other}, live, rows, 1);
  bits.erase(bits.begin(), other);
  return own;
}

// --- what all have of the chunks ----------------------------------------------------------------

// The bits of a level's numbers that tell chunks apart.
int64_t bits_of_chunks(const Share& share, Level level) {
  int64_t mask = 0;
  for (const Bit& bit : share.bits) {
    if (bit.level == level && bit.stride >= kChunk) mask |= bit.step;
  }
  return mask;
}

// Of a row's chunks, the largest and the sum against it: who has which, and where they meet.
class Chunks {
 public:
  Chunks(Tile& tile, const Share& share, const Accumulator& top, const Accumulator& sums,
         int64_t live, int64_t rows)
      : tile_(tile), share_(share), top_(top), sums_(sums), live_(live), rows_(rows) {
    const Layout& of_rows = tile.kernel.schedule->rows;
    row_warps_ = bits_taken(of_rows, Level::Warp);
    row_lanes_ = bits_taken(of_rows, Level::Lane);
    warps_ = bits_of_chunks(share, Level::Warp);
    is_sent_ = bits_of_chunks(share, Level::Cluster) != 0;
    how_.parts = ceil_divide(share.count.bounds().high, kChunk);
    if (!is_own() && how_.parts > kFewParts) {
      how_.lanes = std::min(free_lanes(), power_of_two_from(how_.parts));
      for (int64_t step = kLanes / 2; step > 0; step /= 2) {
        const int64_t number = packed(step, free_bits()).constant();
        if (number > 0 && number < how_.lanes) how_.steps.push_back(static_cast<int>(step));
      }
    }
    if (is_own()) return;
    const int64_t size = rows_ * slots() * how_.parts * (is_sent_ ? tile.cluster : 1);
    const Space space = is_sent_ ? Space::Cluster : Space::Shared;
    given_top_ = like(tile, top, "given", size, space);
    given_ = like(tile, sums, "given", size, space);
  }

  Body give() {
    if (is_own()) return {};
    Body all = each("q", rows_, [&](const Expr& q) {
      return each("p", live_, [&](const Expr& p) {
        const Expr from = p * rows_ + q, to = at(q, share_.chunk(p));
        Body body = give(given_top_, to, top_, from);
        append(body, give(given_, to, sums_, from));
        return where_is(p, std::move(body));
      });
    });
    const int64_t others = (power_of_two_from(tile_.warps) - 1) & ~(row_warps_ | warps_);
    if (others != 0) all = {if_less(packed(warp_of(tile_), others), 1, std::move(all))};
    const int64_t givers = is_sent_ ? std::min<int64_t>(tile_.cluster, free_lanes()) : 1;
    return givers == free_lanes() ? all : Body{if_less(free_lane(), givers, std::move(all))};
  }

  // Where there is a chunk: not all that are covered are.
  Body where_is(const Expr& live, Body body) const {
    const Expr chunk = share_.chunk(live);
    if (chunk.bounds().high < how_.parts) return body;
    return {if_less(chunk, how_.parts, std::move(body))};
  }

  Body wait() const {
    if (!is_sent_) return {barrier()};
    return {await(given_top_.values), await(given_.values)};
  }

  Body take(const Accumulator& largest) {
    const Accumulator tops = like(tile_, top_, "u", how_.many(), Space::Register),
                      sums = like(tile_, sums_, "u", how_.many(), Space::Register),
                      against = like(tile_, top_, "against", how_.many(), Space::Register),
                      most = like(tile_, top_, "most", 1, Space::Register);
    return each("q", rows_, [&](const Expr& q) {
      Body body = take(tops, given_top_, top_, q);
      append(body, take(sums, given_, sums_, q));
      append(body, clamp_all(tile_, against, tops, how_.many()));
      append(body, added_up(tile_, tops, how_));
      if (largest.values >= 0) append(body, copy(tile_, largest, q, tops, 0));
      append(body, clamp_all(tile_, most, tops, 1));
      append(body, each("w", how_.many(), [&](const Expr& w) {
               return exponentials(tile_, sums, w, most.values, 0, against.values, sums.values);
             }));
      append(body, added_up(tile_, sums, how_));
      append(body, copy(tile_, sums_, q, sums, 0));
      return body;
    });
  }

 private:
  // Each thread has all of its row's.
  bool is_own() const { return live_ * kChunk == covered_by(share_.layout); }

  // Rows of a block, of one register, and the number of a thread's.
  int64_t slots() const {
    return int64_t{1} << (std::popcount(static_cast<uint64_t>(row_warps_)) +
                          std::popcount(static_cast<uint64_t>(row_lanes_)));
  }
  Expr slot() const {
    return packed(warp_of(tile_), row_warps_) * (kLanes / free_lanes()) +
           packed(lane_of_warp(), row_lanes_);
  }

  // Lanes that have the same, and the number of one among them.
  int64_t free_lanes() const {
    return kLanes >> std::popcount(static_cast<uint64_t>(row_lanes_));
  }
  int64_t free_bits() const { return ~row_lanes_ & (kLanes - 1); }
  Expr free_lane() const { return packed(lane_of_warp(), free_bits()); }

  Expr at(const Expr& q, const Expr& chunk) const {
    return (q * slots() + slot()) * how_.parts + chunk;
  }

  // To each block of a cluster, by one of the lanes that have the same.
  Body give(const Accumulator& given, const Expr& to, const Accumulator& all,
            const Expr& from) {
    if (!is_sent_) return copy(tile_, given, to, all, from);
    const int64_t blocks = tile_.cluster, lanes = std::min(blocks, free_lanes());
    return each("b", blocks / lanes, [&](const Expr& b) {
      return sent(copy(tile_, given, to * blocks + free_lane() + b * lanes, all, from));
    });
  }

  Body take(const Accumulator& theirs, const Accumulator& given, const Accumulator& own,
            const Expr& q) {
    return taken(tile_, theirs, how_, mod(free_lane(), how_.lanes),
                 [&](const Expr& w, const Expr& chunk) {
                   if (is_own()) return copy(tile_, theirs, w, own, w * rows_ + q);
                   const Expr place = at(q, chunk);
                   return copy(tile_, theirs, w, given,
                               is_sent_ ? place * tile_.cluster + rank_of(tile_) : place);
                 });
  }

  Tile& tile_;
  const Share& share_;
  const Accumulator top_, sums_;
  const int64_t live_, rows_;
  Accumulator given_top_, given_;
  Taken how_;
  int64_t row_warps_ = 0, row_lanes_ = 0;  // bits that tell rows apart,
  int64_t warps_ = 0;                      // and chunks
  bool is_sent_ = false;
};

std::vector<Bit> below(const std::vector<Bit>& bits, int64_t stride) {
  std::vector<Bit> lower = bits;
  std::erase_if(lower, [&](const Bit& bit) { return bit.stride >= stride; });
  return lower;
}

// Behind the last part of one those of another.
void add(Reduced& all, Reduced more) {
  append(all.after.back(), std::move(more.after[0]));
  all.after.insert(all.after.end(), std::next(more.after.begin()), more.after.end());
  all.waits.insert(all.waits.end(), more.waits.begin(), more.waits.end());
  all.live = more.live;
}

}  // namespace

Reduced reduce_exponentials(Tile& tile, const Share& share, const Accumulator& all,
                            const Accumulator& largest, int64_t rows) {
  const int64_t live = share.registers * share.vector, size = live * rows;
  Accumulator top = like(tile, all, "top", size, Space::Register), sums = all;
  top.op = Op::max, sums.op = Op::sum;
  std::vector<Bit> bits = below(share.bits, kChunk);
  Reduced result;
  result.after = {each("p", size, [&](const Expr& p) { return copy(tile, top, p, all, p); })};
  add(result, reduce_bits(tile, top, order_of(top, bits), live, rows, 1));
  const int64_t chunks = result.live * rows;
  const Accumulator against = like(tile, top, "against", chunks, Space::Register);
  append(result.after.back(), clamp_all(tile, against, top, chunks));
  Body powers = first_exponentials(tile, share, sums, rows, against, chunks);
  Reduced own = add_own(tile, sums, bits, live, rows);
  append(powers, std::move(own.after[0]));
  if (hastens(share, all, size)) {
    const int highest = highest_exponent(tile, result.after.back(), top, against, chunks);
    powers = {shortcut(std::move(powers), highest)};
  }
  append(result.after.back(), std::move(powers));
  add(result, reduce_bits(tile, sums, bits, own.live, rows, 1));
  if (covered_by(share.layout) <= kChunk) {
    if (largest.values >= 0)
      append(result.after.back(),
             each("q", rows, [&](const Expr& q) { return copy(tile, largest, q, top, q); }));
    return result;
  }
  Chunks of_row(tile, share, top, sums, result.live, rows);
  append(result.after.back(), of_row.give());
  if (share.turns > 1) {
    result.in_turn = std::move(result.after[0]);
    result.after = {{}};
  }
  result.waits.push_back(of_row.wait());
  result.after.push_back(of_row.take(largest));
  return result;
}

}  // namespace tiny_compile
