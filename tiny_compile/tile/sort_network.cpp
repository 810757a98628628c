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

constexpr int kLanes = 32;

// Puts words of threads in order, those of each row by themselves.
class Network {
 public:
  Network(Tile& tile, const SortWords& words, const SortShape& shape, const Expr& thread,
          const Expr& row, const SortWordArray& all)
      : tile_(tile), words_(words), shape_(shape), thread_(thread), row_(row), all_(all) {
    if (shape.threads > 1) theirs_ = words.array("theirs", shape.own, Space::Register);
    if (!shape.is_in_warp())
      room_ = words.array("room", shape.rows * shape.padded(), Space::Shared);
  }

  Body sort() const {
    Body body;
    for (int size = 2; size <= shape_.own; size *= 2) {
      append(body, in_order(size / 2, true));
      append(body, in_order_from(size / 4));
    }
    append(body, by_lanes());
    append(body, by_warps());
    return body;
  }

 private:
  static constexpr int kFar =
      5;  // of a thread's bits those that another warp's differ in are from here on

  // Few enough words that all steps of a warp may be written one after the other.
  bool is_short() const { return shape_.own <= 4; }

  int lists() const { return shape_.list_bits(); }

  int make(Body& body, Op op, std::vector<int> operands) const {
    return words_.make(body, op, DType::i32, std::move(operands));
  }
  int number(int64_t value) const { return words_.number(DType::i32, value); }
  int integer(Body& body, const Expr& value) const {
    return as_data(tile_, body, value, DType::i32);
  }
  Expr named(Body& body, const char* name, int64_t extent, int value) const {
    body.push_back(let_chosen(name, extent, value));
    return Expr::index(name, extent);
  }

  Statement over_own(const Expr& r, Body body) const {
    return for_each(r.name(), r.bounds().high + 1, true, std::move(body));
  }

  // The thread's own words: each with that `apart` from it, or of lists of twice as many with its mirror image.
  Body in_order(int apart, bool mirrored) const {
    if (shape_.own < 2) return {};
    const Expr p = Expr::index("p", shape_.own / 2), list = floor_div(p, apart) * (2 * apart),
               at = mod(p, apart), a = list + at,
               b = mirrored ? list + (2 * apart - 1) - at : a + apart;
    Body body;
    const SortWord first = words_.read(body, all_, a), second = words_.read(body, all_, b);
    const int swaps = words_.is_before(body, second, first);
    const SortWord least = words_.either(body, swaps, second, first),
                   greatest = words_.either(body, swaps, first, second);
    words_.put(body, all_, a, least);
    words_.put(body, all_, b, greatest);
    return {over_own(p, std::move(body))};
  }

  Body in_order_from(int apart) const {
    Body body;
    for (; apart > 0; apart /= 2) append(body, in_order(apart, false));
    return body;
  }

  Expr mirrored(const Expr& r, bool is_mirrored) const {
    return is_mirrored ? shape_.own - 1 - r : r;
  }

  // theirs[r] = words[r] of the lane whose number differs in these bits.
  Body of_lane(const Expr& mask, bool is_mirrored) const {
    const Expr r = Expr::index("r", shape_.own);
    Body body;
    words_.put(body, theirs_, r, words_.read(body, all_, mirrored(r, is_mirrored), mask));
    return {over_own(r, std::move(body))};
  }

  // The same of any thread.
  Body of_thread(const Expr& partner, bool is_mirrored) const {
    const Expr r = Expr::index("r", shape_.own);
    Body give, take;
    const Expr own = row_ * shape_.padded();
    words_.put(give, room_, own + r * shape_.threads + thread_, words_.read(give, all_, r));
    words_.put(
        take, theirs_, r,
        words_.read(take, room_, own + mirrored(r, is_mirrored) * shape_.threads + partner));
    return {over_own(r, std::move(give)), barrier(), over_own(r, std::move(take)), barrier()};
  }

  // words[r] = the lesser of it and theirs[r], or the greater.
  Statement choose(int is_first) const {
    const Expr r = Expr::index("r", shape_.own);
    Body body;
    const SortWord own = words_.read(body, all_, r), other = words_.read(body, theirs_, r);
    const int before = words_.is_before(body, other, own),
              takes = words_.make(body, Op::eq, DType::boolean, {before, is_first});
    words_.put(body, all_, r, words_.either(body, takes, other, own));
    return over_own(r, std::move(body));
  }

  // Whether the thread's number lacks the bit.
  int lacks(Body& body, int bit) const {
    const int own = make(body, Op::bitwise_and, {integer(body, thread_), bit});
    return words_.make(body, Op::eq, DType::boolean, {own, number(0)});
  }

  // Threads whose numbers differ in bit `log` and, mirrored, in those below it that tell a list's threads apart.
  struct Merge {
    int mask, is_first;
  };
  Merge merge(Body& body, const Expr& log) const {
    const int half = make(body, Op::shift_left, {number(1), integer(body, log)}),
              list = make(body, Op::minimum, {half, number(1 << lists())}),
              mask = make(body, Op::sub, {make(body, Op::add, {half, list}), number(1)});
    int is_first = lacks(body, half);
    if (int64_t{1} << lists() < shape_.threads) {
      const int is_dropped =
          words_.make(body, Op::le, DType::boolean, {number(1 << lists()), half});
      is_first = words_.make(body, Op::bitwise_or, DType::boolean, {is_dropped, is_first});
    }
    return {mask, is_first};
  }

  // Threads whose numbers differ in bit `log` alone.
  Body step(const Expr& log, bool is_far) const {
    Body body;
    const int apart = make(body, Op::shift_left, {number(1), integer(body, log)}),
              is_first = lacks(body, apart);
    append(body, exchange(body, apart, is_far, false));
    body.push_back(choose(is_first));
    return body;
  }

  Body exchange(Body& body, int mask, bool is_far, bool is_mirrored) const {
    if (!is_far)
      return of_lane(named(body, is_mirrored ? "mask" : "apart", kLanes, mask), is_mirrored);
    const int partner = make(body, Op::bitwise_xor, {integer(body, thread_), mask});
    return of_thread(
        named(body, is_mirrored ? "partner" : "neighbour", shape_.threads, partner),
        is_mirrored);
  }

  // Bits log - 1, log - 2, .. of a list of 1 << log threads, down to `last`.
  Body steps(const Expr& log, int last, bool is_far) const {
    const Expr below = log - last;
    const int64_t most = below.bounds().high;
    if (most <= 0) return {};
    const Expr k = Expr::index("k", most);
    // Where the list is shorter there is none of it.
    Body body = step(max(log - 1 - k, last), is_far);
    if (!below.is_constant()) body = {if_less(k, below, std::move(body))};
    return {for_each(k.name(), most, !is_far && is_short(), std::move(body))};
  }

  Body by_lanes() const {
    const int logs = std::min(shape_.bits(), kFar);
    if (logs == 0) return {};
    const Expr h = Expr::index("h", logs);
    Body body;
    const Merge m = merge(body, h);
    append(body, exchange(body, m.mask, false, true));
    body.push_back(choose(m.is_first));
    append(body, steps(min(h, lists()), 0, false));
    append(body, in_order_from(shape_.own / 2));
    return {for_each(h.name(), logs, is_short(), std::move(body))};
  }

  Body by_warps() const {
    if (shape_.is_in_warp()) return {};
    const int logs = shape_.bits() - kFar;
    const Expr h = Expr::index("h", logs), log = h + kFar;
    Body body;
    const Merge m = merge(body, log);
    append(body, exchange(body, m.mask, true, true));
    body.push_back(choose(m.is_first));
    if (lists() > kFar) append(body, steps(min(log, lists()), kFar, true));
    append(body, steps(std::min(kFar, lists()), 0, false));
    append(body, in_order_from(shape_.own / 2));
    return {for_each(h.name(), logs, false, std::move(body))};
  }

  Tile& tile_;
  const SortWords& words_;
  const SortShape shape_;
  const Expr thread_, row_;  // of those of its row, of its block
  const SortWordArray all_;
  SortWordArray theirs_, room_;
};

}  // namespace

Body sort_words(Tile& tile, const SortWords& words, const SortShape& shape, const Expr& thread,
                const Expr& row, const SortWordArray& all) {
  return Network(tile, words, shape, thread, row, all).sort();
}

}  // namespace tiny_compile
