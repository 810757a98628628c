// Which loops are the rows, the columns and the batches of a product? Axes that step together
// in every access are one. Each row axis belongs to the left factor, to the right one, or is a
// batch; so is a second axis of the left factor that is not one with the first.
//
//   rows(b: 4, i: 8, j: 32) { r0 = dot(k: 16) load x[b*128 + i*16 + k], load w[j*16 + k]
//                             store y[b*256 + i*32 + j] = r0 }
// =>
//   b and i are one loop of 32, of the left factor alone; j is of the right one
//   rows j (strides 16 of w, 1 of y), columns b,i (16 of x, 32 of y), k (1 of both)
#include "tiny_compile/loops/library_layout.h"

#include <algorithm>

namespace tiny_compile {
namespace {

using Loops = std::vector<LibraryLoop>;

bool is_one_with(const LibraryLoop& outer, const LibraryLoop& inner) {
  for (int a = 0; a < kAccesses; a++) {
    if (outer.stride[a] != inner.stride[a] * inner.extent) return false;
  }
  return true;
}

// Loops that step together as one: (i: 8, 1024) (j: 1024, 1) => (8192, 1).
Loops collapse(Loops loops, LibraryAccess by) {
  std::stable_sort(loops.begin(), loops.end(),
                   [&](const LibraryLoop& lhs, const LibraryLoop& rhs) {
                     return lhs.stride[by] > rhs.stride[by];
                   });
  Loops result;
  for (const LibraryLoop& loop : loops) {
    if (result.empty() || !is_one_with(result.back(), loop)) {
      result.push_back(loop);
      continue;
    }
    const int64_t extent = result.back().extent * loop.extent;
    result.back() = loop;
    result.back().extent = extent;
  }
  return result;
}

// The factor along whose axis the result is contiguous; one without axes will do.
LibraryAccess choose_fast(const Loops& left, const Loops& right) {
  auto has_unit = [](const Loops& loops) {
    return !loops.empty() && loops.back().stride[kResult] == 1;
  };
  if (has_unit(right)) return kRight;
  return has_unit(left) || left.empty() ? kLeft : kRight;
}

// The loop that is the matrix's axis: the contiguous one, or the longest; the
// others are batches.
LibraryLoop take_main(Loops loops, bool fast, Loops& batches) {
  if (loops.empty()) return {};
  size_t main = loops.size() - 1;
  for (size_t l = 0; l < loops.size() && !fast; l++) {
    if (loops[l].extent > loops[main].extent) main = l;
  }
  const LibraryLoop result = loops[main];
  loops.erase(loops.begin() + static_cast<int64_t>(main));
  batches.insert(batches.end(), loops.begin(), loops.end());
  return result;
}

}  // namespace

bool lay_out(LibraryMatrix& matrix, int64_t rows, int64_t row_stride, int64_t columns,
             int64_t column_stride) {
  const int64_t as_it_is = columns == 1 ? rows : column_stride;
  const int64_t transposed = rows == 1 ? columns : row_stride;
  matrix.transposed = !((rows == 1 || row_stride == 1) && as_it_is >= rows);
  matrix.ld = matrix.transposed ? transposed : as_it_is;
  return !matrix.transposed || ((columns == 1 || column_stride == 1) && transposed >= columns);
}

std::optional<std::vector<int64_t>> strides_of(const Expr& index, const std::vector<Axis>& axes,
                                               int64_t& offset) {
  std::vector<int64_t> strides(axes.size());
  for (const Term& term : terms(index)) {
    if (term.factor.is_constant()) {
      offset = term.coefficient * term.factor.constant();
      continue;
    }
    const auto axis = std::find_if(axes.begin(), axes.end(),
                                   [&](const Axis& a) { return term.factor == a.symbol(); });
    if (axis == axes.end()) return std::nullopt;
    strides[static_cast<size_t>(axis - axes.begin())] = term.coefficient;
  }
  return strides;
}

std::optional<ProductLoops> product_loops(const Loops& rows, const Loops& inner) {
  Loops left, right, batches;
  for (const LibraryLoop& loop : rows) {
    const bool of_left = loop.stride[kLeft] != 0, of_right = loop.stride[kRight] != 0;
    (of_left && !of_right ? left : of_right && !of_left ? right : batches).push_back(loop);
  }
  left = collapse(left, kResult);
  right = collapse(right, kResult);
  const Loops k = collapse(inner, kLeft);
  if (k.size() > 1) return std::nullopt;
  ProductLoops result;
  result.k = k.empty() ? LibraryLoop{} : k[0];
  result.fast = choose_fast(left, right);
  result.rows = take_main(result.fast == kLeft ? left : right, true, batches);
  result.columns = take_main(result.fast == kLeft ? right : left, false, batches);
  result.batches = collapse(batches, kResult);
  return result;
}

}  // namespace tiny_compile
