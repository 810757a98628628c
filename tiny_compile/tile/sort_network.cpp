// How do threads sort words? By Batcher's bitonic sort. Each holds some neighbours of the row in registers, compares
// them with each other, then with those of another lane, or, where many warps share a row, of a thread of another warp,
// by way of shared memory:
//
//   for p < 2 unrolled { words[2*p], words[2*p + 1] in order }  ..
//   for h < 5 {                                        lists of 4 << h words become lists twice as long:
//     theirs[r] = words[3 - r] of lane ^ mask          one is compared with the other reversed,
//     words[r] = the lesser, or the greater
//     for k < 4 { if k < h { .. of lane ^ apart .. } } then with what is half as far away, and so on
//     for p < 2 unrolled { words[p], words[p + 2] in order }  ..
//   }
//
// Every comparator puts the lesser first. Where only the first k of the row are kept, a merge of lists of k keeps
// the lesser of each comparison, and both sides go on with the same list.
#include "tiny_compile/tile/sort_network.h"

#include <algorithm>

#include "tiny_compile/tile/accumulator.h"

namespace tiny_compile {
namespace {

constexpr int kFar = 5;  // the first of a thread's bits that tell its warp from others

// What is known while words of threads are put in order, those of each row by themselves.
struct Network {
  Tile& tile;
  const SortWords& words;
  const SortShape shape;
  const Expr thread, row;  // of those of its row, of its block
  const SortWordArray all;
  SortWordArray theirs, room;  // a partner's, and a block's, where there are any

  int make(Body& body, Op op, std::vector<int> operands) const {
    return words.make(body, op, DType::i32, std::move(operands));
  }
  int number(int64_t value) const { return words.number(DType::i32, value); }
  int integer(Body& body, const Expr& value) const {
    return as_data(tile, body, value, DType::i32);
  }
};

// --- the words of one thread -----------------------------------------------------------------

Statement over_own(const Expr& r, Body body) {
  return for_each(r.name(), r.bounds().high + 1, true, std::move(body));
}

// The thread's own words: each with that `apart` from it, or of lists of twice as many with its mirror image.
Body in_order(const Network& net, int apart, bool mirrored) {
  if (net.shape.own < 2) return {};
  const Expr p = Expr::index("p", net.shape.own / 2), list = floor_div(p, apart) * (2 * apart),
             at = mod(p, apart), a = list + at,
             b = mirrored ? list + (2 * apart - 1) - at : a + apart;
  Body body;
  const SortWord first = net.words.read(body, net.all, a),
                 second = net.words.read(body, net.all, b);
  const int swaps = net.words.is_before(body, second, first);
  const SortWord least = net.words.either(body, swaps, second, first),
                 greatest = net.words.either(body, swaps, first, second);
  net.words.put(body, net.all, a, least);
  net.words.put(body, net.all, b, greatest);
  return {over_own(p, std::move(body))};
}

Body in_order_from(const Network& net, int apart) {
  Body body;
  for (; apart > 0; apart /= 2) append(body, in_order(net, apart, false));
  return body;
}

// --- with a partner --------------------------------------------------------------------------

// words[r] = the lesser of it and theirs[r], or the greater.
Statement choose(const Network& net, int is_first) {
  const Expr r = Expr::index("r", net.shape.own);
  Body body;
  const SortWord own = net.words.read(body, net.all, r),
                 other = net.words.read(body, net.theirs, r);
  const int before = net.words.is_before(body, other, own),
            takes = net.words.make(body, Op::eq, DType::boolean, {before, is_first});
  net.words.put(body, net.all, r, net.words.either(body, takes, other, own));
  return over_own(r, std::move(body));
}

// Whether the thread's number lacks the bit.
int lacks(const Network& net, Body& body, int bit) {
  const int own = net.make(body, Op::bitwise_and, {net.integer(body, net.thread), bit});
  return net.words.make(body, Op::eq, DType::boolean, {own, net.number(0)});
}

// Threads whose numbers differ in bit `log` and, mirrored, in those below it that tell a list's threads apart.
struct Merge {
  int mask, is_first;
};
Merge merge(const Network& net, Body& body, const Expr& log) {
  const int half = net.make(body, Op::shift_left, {net.number(1), net.integer(body, log)}),
            list = net.make(body, Op::minimum, {half, net.number(1 << net.shape.list_bits())}),
            mask =
                net.make(body, Op::sub, {net.make(body, Op::add, {half, list}), net.number(1)});
  int is_first = lacks(net, body, half);
  if (int64_t{1} << net.shape.list_bits() < net.shape.threads) {
    const int is_dropped = net.words.make(body, Op::le, DType::boolean,
                                          {net.number(1 << net.shape.list_bits()), half});
    is_first = net.words.make(body, Op::bitwise_or, DType::boolean, {is_dropped, is_first});
  }
  return {mask, is_first};
}

// --- what a partner holds --------------------------------------------------------------------

Expr mirrored(const Network& net, const Expr& r, bool is_mirrored) {
  return is_mirrored ? net.shape.own - 1 - r : r;
}

// theirs[r] = words[r] of the lane whose number differs in these bits.
Body of_lane(const Network& net, const Expr& mask, bool is_mirrored) {
  const Expr r = Expr::index("r", net.shape.own);
  Body body;
  net.words.put(body, net.theirs, r,
                net.words.read(body, net.all, mirrored(net, r, is_mirrored), mask));
  return {over_own(r, std::move(body))};
}

// The same of any thread.
Body of_thread(const Network& net, const Expr& partner, bool is_mirrored) {
  const Expr r = Expr::index("r", net.shape.own);
  Body give, take;
  const Expr own = net.row * net.shape.padded();
  net.words.put(give, net.room, own + r * net.shape.threads + net.thread,
                net.words.read(give, net.all, r));
  net.words.put(
      take, net.theirs, r,
      net.words.read(take, net.room,
                     own + mirrored(net, r, is_mirrored) * net.shape.threads + partner));
  return {over_own(r, std::move(give)), barrier(), over_own(r, std::move(take)), barrier()};
}

Expr named(Body& body, const char* name, int64_t extent, int value) {
  body.push_back(let_chosen(name, extent, value));
  return Expr::index(name, extent);
}

Body exchange(const Network& net, Body& body, int mask, bool is_far, bool is_mirrored) {
  if (!is_far)
    return of_lane(net, named(body, is_mirrored ? "mask" : "apart", kLanes, mask), is_mirrored);
  const int partner = net.make(body, Op::bitwise_xor, {net.integer(body, net.thread), mask});
  return of_thread(
      net, named(body, is_mirrored ? "partner" : "neighbour", net.shape.threads, partner),
      is_mirrored);
}

// --- the steps of a merge --------------------------------------------------------------------

// Few enough words that all steps of a warp may be written one after the other.
bool is_short(const Network& net) { return net.shape.own <= 4; }

// Threads whose numbers differ in bit `log` alone.
Body step(const Network& net, const Expr& log, bool is_far) {
  Body body;
  const int apart = net.make(body, Op::shift_left, {net.number(1), net.integer(body, log)}),
            is_first = lacks(net, body, apart);
  append(body, exchange(net, body, apart, is_far, false));
  body.push_back(choose(net, is_first));
  return body;
}

// Bits log - 1, log - 2, .. of a list of 1 << log threads, down to `last`.
Body steps(const Network& net, const Expr& log, int last, bool is_far) {
  const Expr below = log - last;
  const int64_t most = below.bounds().high;
  if (most <= 0) return {};
  const Expr k = Expr::index("k", most);
  // Where the list is shorter there is none of it.
  Body body = step(net, max(log - 1 - k, last), is_far);
  if (!below.is_constant()) body = {if_less(k, below, std::move(body))};
  return {for_each(k.name(), most, !is_far && is_short(net), std::move(body))};
}

Body by_lanes(const Network& net) {
  const int logs = std::min(net.shape.bits(), kFar);
  if (logs == 0) return {};
  const Expr h = Expr::index("h", logs);
  Body body;
  const Merge m = merge(net, body, h);
  append(body, exchange(net, body, m.mask, false, true));
  body.push_back(choose(net, m.is_first));
  append(body, steps(net, min(h, net.shape.list_bits()), 0, false));
  append(body, in_order_from(net, net.shape.own / 2));
  return {for_each(h.name(), logs, is_short(net), std::move(body))};
}

Body by_warps(const Network& net) {
  if (net.shape.is_in_warp()) return {};
  const int logs = net.shape.bits() - kFar;
  const Expr h = Expr::index("h", logs), log = h + kFar;
  Body body;
  const Merge m = merge(net, body, log);
  append(body, exchange(net, body, m.mask, true, true));
  body.push_back(choose(net, m.is_first));
  if (net.shape.list_bits() > kFar)
    append(body, steps(net, min(log, net.shape.list_bits()), kFar, true));
  append(body, steps(net, std::min(kFar, net.shape.list_bits()), 0, false));
  append(body, in_order_from(net, net.shape.own / 2));
  return {for_each(h.name(), logs, false, std::move(body))};
}

}  // namespace

Body sort_words(Tile& tile, const SortWords& words, const SortShape& shape, const Expr& thread,
                const Expr& row, const SortWordArray& all) {
  Network net{tile, words, shape, thread, row, all, {}, {}};
  if (shape.threads > 1) net.theirs = words.array("theirs", shape.own, Space::Register);
  if (!shape.is_in_warp())
    net.room = words.array("room", shape.rows * shape.padded(), Space::Shared);
  Body body;
  for (int size = 2; size <= shape.own; size *= 2) {
    append(body, in_order(net, size / 2, true));
    append(body, in_order_from(net, size / 4));
  }
  append(body, by_lanes(net));
  append(body, by_warps(net));
  return body;
}

}  // namespace tiny_compile
