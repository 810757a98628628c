// How many elements does a row have? Where parts of 1024 are added up, the last is rarely whole, and
// every element of all of them asks whether it is there:
//
//   rows(i0: 3) { r0 = sum(j0: 1024) where(lt(index[i0*1024 + j0], 3000), load x[i0*1024 + j0] if .., -0.0) }
// =>
//   rows(i0: 3) { r0 = sum(j0: min(1024, 3000 - i0*1024)) load x[i0*1024 + j0] }
//
// The contract fills up a short chunk with the same identity.
#include "tiny_compile/loops/ends_of_rows.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

// The condition of a reduction over this axis alone that takes the identity where it is false; or -1.
int condition_of(const Kernel& kernel, const Step& step) {
  if (step.kind != StepKind::Reduce || step.inner.size() != 1) return -1;
  const Scalar& value = kernel.scalars[step.value];
  if (value.kind != ScalarKind::Apply || value.op != Op::where) return -1;
  const Scalar& otherwise = kernel.scalars[value.operands[2]];
  const bool is_identity = otherwise.kind == ScalarKind::Constant &&
                           otherwise.value == identity(step.op, value.dtype);
  return is_identity ? value.operands[0] : -1;
}

// How many of the axis' first elements the condition holds for; nothing where it is another's.
std::optional<Expr> elements_under(const Kernel& kernel, int condition, const Axis& axis) {
  const auto less = comparison(kernel, kernel.scalars[condition]);
  if (!less || less->op != Op::lt || coefficient(less->difference, axis.symbol()) != 1)
    return std::nullopt;
  const Expr count = axis.symbol() - less->difference;
  for (int other = kernel.rows; other < static_cast<int>(kernel.axes.size()); other++)
    if (depends_on(count, kernel.axes[other].name)) return std::nullopt;
  if (count.bounds().low < 1) return std::nullopt;
  return min(axis.extent, count);
}

}  // namespace

Kernel with_ends_of_rows(Kernel kernel) {
  int condition = -1, axis = -1;
  for (const Step& step : kernel.steps) {
    if (step.inner.empty()) continue;
    const int its = condition_of(kernel, step);
    if (its < 0 || (condition >= 0 && (its != condition || step.inner[0] != axis)))
      return kernel;
    condition = its, axis = step.inner[0];
  }
  if (condition < 0) return kernel;
  Axis& loop = kernel.axes[axis];
  const std::optional<Expr> count = elements_under(kernel, condition, loop);
  if (!count) return kernel;
  loop.extent = *count;
  for (Scalar& scalar : kernel.scalars)
    scalar.index = substitute(scalar.index, {{loop.name, loop.symbol()}});
  Scalar& always = kernel.scalars[condition];
  always = Scalar{};
  always.kind = ScalarKind::Constant;
  always.dtype = DType::boolean;
  always.value = Literal::of(DType::boolean, true);
  return with_settled_conditions(std::move(kernel));
}

Kernel over_whole_axes(Kernel kernel) {
  Substitution whole;
  for (const Axis& axis : kernel.axes) whole.push_back({axis.name, axis.symbol()});
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, whole);
  for (Step& step : kernel.steps) step.index = substitute(step.index, whole);
  return kernel;
}

EndedRows ended_rows(const Kernel& kernel) {
  EndedRows rows{with_ends_of_rows(kernel), {}};
  for (size_t a = 0; a < kernel.axes.size(); a++) {
    Expr& extent = rows.kernel.axes[a].extent;
    if (extent != kernel.axes[a].extent) rows.ends[static_cast<int>(a)] = extent;
    extent = kernel.axes[a].extent;
  }
  rows.kernel = over_whole_axes(std::move(rows.kernel));
  return rows;
}

}  // namespace tiny_compile
