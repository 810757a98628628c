// Which way does an operand lie? It is a scalar of the kernel, of loads with strides, windows, masks and conversions;
// lanes and depth are lists of axes. In a view of its own (dot_axes.h) few axes are left of them:
//
//   load x[i0*300 + j0], i0 its lanes, j0 its depth   =>   lane 300, step 1: along its depth
#include "tiny_compile/loops/dot_operands.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/loops/axes.h"

namespace tiny_compile {
namespace {

void add_indices(const Kernel& kernel, int scalar, std::vector<Expr>& indices) {
  const std::vector<bool> parts = below(kernel, scalar);
  for (size_t id = 0; id < parts.size(); id++) {
    if (parts[id]) indices.push_back(kernel.scalars[id].index);
  }
}

// Cycles an element when a loop runs along the list's last axis: what it jumps, how soon it ends.
double cost_along(const DotView& view, const std::vector<int>& list, int scalar) {
  if (list.empty()) return 4;
  const Axis& axis = view.kernel.axes[list.back()];
  const std::vector<bool> parts = below(view.kernel, scalar);
  double cost =
      8.0 / static_cast<double>(std::clamp<int64_t>(axis.extent.bounds().high, 1, 64));
  for (size_t id = 0; id < parts.size(); id++) {
    const Scalar& load = view.kernel.scalars[id];
    if (!parts[id] || load.kind != ScalarKind::Load) continue;
    const int64_t step = coefficient(load.index, axis.symbol());
    const bool sum = !depends_on(load.index - axis.symbol() * step, axis.name);
    cost += !sum ? 2 : std::abs(step) > 1 ? 1 : 0.2;
  }
  return cost;
}

}  // namespace

DotView left_view(const Kernel& kernel, const DotAxes& axes) {
  std::vector<Expr> indices;
  add_indices(kernel, axes.left, indices);
  return view_for(kernel, {axes.rows, axes.depth}, indices, "row_v");
}

DotView right_view(const Kernel& kernel, const DotAxes& axes) {
  std::vector<Expr> indices;
  add_indices(kernel, axes.right, indices);
  return view_for(kernel, {axes.columns, axes.depth}, indices, "column_v");
}

DotView results_view(const Kernel& kernel, const DotAxes& axes) {
  std::vector<Expr> indices;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Store) continue;
    add_indices(kernel, step.value, indices);
    indices.push_back(step.index);
  }
  return view_for(kernel, {axes.rows, axes.columns}, indices);
}

std::optional<Strided> strided(const DotView& view, int operand) {
  if (view.lists[0].size() != 1 || view.lists[1].size() != 1) return std::nullopt;
  const Axis &lane = view.kernel.axes[view.lists[0][0]],
             &step = view.kernel.axes[view.lists[1][0]];
  const std::vector<bool> parts = below(view.kernel, operand);
  for (size_t id = 0; id < parts.size(); id++) {
    const Scalar& load = view.kernel.scalars[id];
    if (!parts[id] || !is_plain(load)) continue;
    const Strided found{static_cast<int>(id), coefficient(load.index, lane.symbol()),
                        coefficient(load.index, step.symbol())};
    const Expr rest = load.index - lane.symbol() * found.lane - step.symbol() * found.step;
    if (depends_on(rest, lane.name) || depends_on(rest, step.name)) continue;
    if ((found.lane == 1 && found.step != 0) || (found.step == 1 && found.lane != 0))
      return found;
  }
  return std::nullopt;
}

std::optional<Strided> rows_as_they_lie(const Program& program, const Kernel& kernel,
                                        const DotAxes& axes) {
  const Scalar& left = kernel.scalars[axes.left];
  if (!is_plain(left) || !count_of(kernel, axes.rows).is_constant() ||
      (left.dtype != DType::f32 && left.dtype != DType::f64) ||
      program.buffers[left.buffer].type.dtype != left.dtype)
    return std::nullopt;
  return strided(left_view(kernel, axes), axes.left);
}

bool lies_along_depth(const DotView& view, int operand) {
  return cost_along(view, view.lists[1], operand) < cost_along(view, view.lists[0], operand);
}

DType sum_type(const Kernel& kernel, const DotAxes& axes) {
  const DType dtype = kernel.scalars[axes.left].dtype;
  return is_integer(dtype) && size_of(dtype) < 4 ? DType::i32 : compute_type(dtype);
}

}  // namespace tiny_compile
