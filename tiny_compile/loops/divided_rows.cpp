// What if an index asks where in a picture, or which of two, a point is? It divides the point's number:
//
//   rows(i0: 4096) { store y[i0] = where(eq(index[i0%2], 1), load a[i0/2], load b[i0/2]) }
// =>
//   rows(i0: 2048, i1: 2) { store y[i0*2 + i1] = where(eq(index[i1], 1), load a[i0], load b[i0]) }
// =>
//   rows(i0: 2048) { store y[i0*2] = load b[i0] ; store y[i0*2 + 1] = load a[i0] }
//
// A loop over the second has divisions and choices for each point, one over the last has none.
#include "tiny_compile/loops/divided_rows.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

constexpr int64_t kUnrolled = 4;    // points of a short last row, at most
constexpr int64_t kLeastTurns = 8;  // of the innermost loop

// A short last row whose points are told apart by conditions.
bool is_unrolled(const Kernel& kernel) {
  if (kernel.rows < 2) return false;
  const Axis &last = kernel.axes[kernel.rows - 1], &before = kernel.axes[kernel.rows - 2];
  const auto asks = [&](const Scalar& scalar) {
    const auto condition = comparison(kernel, scalar);
    return condition && depends_on(condition->difference, last.name);
  };
  return last.extent.is_constant() && last.extent.constant() <= kUnrolled &&
         before.extent.bounds().low >= kLeastTurns &&
         std::any_of(kernel.scalars.begin(), kernel.scalars.end(), asks);
}

}  // namespace

Kernel with_divided_rows_apart(Kernel given) {
  Kernel kernel = collapse_axes(as_points(given));
  if (is_sequential(kernel) || kernel.rows == 0) return given;
  std::vector<Expr> indices;
  for (const Scalar& scalar : kernel.scalars) indices.push_back(scalar.index);
  for (const Step& step : kernel.steps) indices.push_back(step.index);
  DotView view = view_for(kernel, {row_axes(kernel)}, indices);
  const std::vector<int>& rows = view.lists[0];
  if (rows.size() <= static_cast<size_t>(kernel.rows))
    return is_unrolled(kernel) ? kernel : given;
  Kernel apart = view.kernel;
  apart.axes.clear();
  for (int row : rows) apart.axes.push_back(view.kernel.axes[row]);
  apart.rows = static_cast<int>(rows.size());
  if (apart.axes.back().extent.bounds().low < kLeastTurns && !is_unrolled(apart)) return given;
  return normalize(std::move(apart));
}

Kernel with_short_last_row_unrolled(Kernel kernel) {
  if (is_sequential(kernel) || !is_unrolled(kernel)) return kernel;
  const Axis last = kernel.axes[kernel.rows - 1];
  Kernel unrolled = without_steps(kernel);
  ScalarTable table(unrolled);
  for (int64_t k = 0; k < last.extent.constant(); k++) {
    ScalarMapping there;
    there.axes = {{last.name, Expr(k)}};
    const std::vector<int> ids = clone_with_mapping(kernel, {}, there, table);
    for (Step store : kernel.steps) {
      store.index = substitute(store.index, there.axes);
      for (int* root : store.roots()) *root = *root < 0 ? -1 : ids[*root];
      unrolled.steps.push_back(std::move(store));
    }
  }
  unrolled.axes.erase(unrolled.axes.begin() + kernel.rows - 1);
  unrolled.rows--;
  return with_settled_conditions(normalize(std::move(unrolled)));
}

}  // namespace tiny_compile
