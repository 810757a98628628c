// How does a thread of a GPU follow the contract's tree alone, with room for a few numbers? By a stack over
// elements in bit-reversed order (tile/columns.cpp), of each chunk; and by another over the chunks, which come
// in such an order too:
//
//   r0 = sum(j0: 3000) load x[..]
// =>
//   for turn_1 < 4 {
//     number_1 = turn_1%2*2 + turn_1/2 ; left_1 = min(3000 - number_1*1024, 1024)
//     for .. { .. stack0[height] = $0 ; .. }                the chunk's tree
//     stack1[height_1] = stack0[0] ; ..
//   }
//   r0 = stack1[0]
//
// A sum of exponentials goes over the row twice: for its maximum, and for what each chunk comes to.
#include "tiny_compile/tile/row_alone.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/empty.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/columns.h"
#include "tiny_compile/tile/row_exact.h"

namespace tiny_compile {
namespace {

// Chunks, chunks of chunks, ..., whose stacks are a few elements each.
struct Pieces {
  std::vector<int> stacks{};  // of each level
  int most = -1;              // of sum_exp: an array for a chunk's maximum
  int whole = -1;             // and the row's, of several chunks
};

Body chunk_alone(RowReduction& x, const Pieces& all, const Expr& base, const Expr& count) {
  RowTile& r = x.rows;
  const int stack = all.stacks[0];
  if (all.most < 0) return tree_of_column(x, stack, -1, base, count);
  Body body = accumulate(x, Op::max, all.most, base, base + count);
  const int m = clamped(r.tile, body, read_back(r, body, all.most, 0), x.type);
  body.push_back(set(all.most, 0, m));
  append(body, tree_of_column(x, stack, all.most, base, count));
  if (all.whole < 0) return body;
  const int below = computed(r.tile, body, Op::sub, x.type, {m, all.whole}),
            factor = computed(r.tile, body, Op::exp, x.type, {below}),
            sum = read_back(r, body, stack, 0);
  body.push_back(set(stack, 0, computed(r.tile, body, Op::mul, x.type, {sum, factor})));
  return body;
}

Body piece_of_row(RowReduction& x, const Pieces& all, int level, const Expr& base,
                  const Expr& count) {
  RowTile& r = x.rows;
  const int stack = all.stacks[static_cast<size_t>(level)];
  if (level == 0) return chunk_alone(x, all, base, count);
  int64_t size = kChunk;  // of a piece
  for (int below = 1; below < level; below++) size *= kChunk;
  return tree_of_pieces(
      x, level, stack, ceil_div(count, size), [&](const Expr& number, const Expr& place) {
        const Expr left = r.index("left_" + std::to_string(level), size + 1);
        Body body = {let(left.name(), size + 1, min(count - number * size, size))};
        append(body, piece_of_row(x, all, level - 1, base + number * size, left));
        const int result = read_back(r, body, all.stacks[static_cast<size_t>(level) - 1], 0);
        body.push_back(set(stack, place, result));
        return body;
      });
}

}  // namespace

int tree_alone(RowReduction& x, Body& body) {
  RowTile& r = x.rows;
  const bool exponentials = x.step.op == Op::sum_exp;
  Pieces all;
  const auto add_stack = [&](int64_t pieces) {
    int bits = 0;
    while ((int64_t{1} << bits) < pieces) bits++;
    const std::string name = str("stack", all.stacks.size(), "_", x.type);
    all.stacks.push_back(scratch(r, name, x.type, bits + 1));
  };
  const int64_t most = x.count.bounds().high;
  add_stack(std::min(most, kChunk));
  for (int64_t pieces = ceil_divide(most, kChunk); pieces > 1;
       pieces = ceil_divide(pieces, kChunk))
    add_stack(std::min(pieces, kChunk));
  if (exponentials) all.most = scratch(r, str("most_", x.type), x.type, 1);
  if (exponentials && most > kChunk) {
    const int largest = scratch(r, str("largest_", x.type), x.type, 1);
    append(body, accumulate(x, Op::max, largest, 0, x.count));
    all.whole = clamped(r.tile, body, read_back(r, body, largest, 0), x.type);
  }
  const int levels = static_cast<int>(all.stacks.size());
  Body some = piece_of_row(x, all, levels - 1, 0, x.count);
  const int result = all.stacks.back();
  if (x.count.is_constant()) return append(body, std::move(some)), result;
  body.push_back(if_less(0, x.count, std::move(some)));
  if (x.count.bounds().low > 0 || x.step.op == Op::max || x.step.op == Op::min) return result;
  const int nothing = add_constant(r.tile, of_nothing(x.step.op, x.type));
  body.push_back(otherwise({set(result, 0, nothing)}));
  return result;
}

}  // namespace tiny_compile
