// Does a scan have operands of its dtype, one start a row, and a mask that covers the row?
//
//   scan y[i0*1000 + i1*256 + j0] for (j0: 256) = cumsum $3 from $5 where lt(i1*256 + j0, 1000)
//
// The last piece of a row stores only what is of the row: where lt(f, n), its place is a number of
// the rows plus a multiple of f, and the pieces' loops give f each of 0 .. n-1, once.
#include "tiny_compile/loops/scan_rules.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/coverage.h"
#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

std::string why_wrong_total(const Step& step, DType dtype) {
  if (dtype == DType::boolean || step.dtype != compute_type(dtype))
    return str("the total of ", info(step.op).name, " of ", dtype, " is no ", step.dtype);
  if (step.op == Op::logcumsumexp && !is_float(dtype)) return str("logcumsumexp of ", dtype);
  return "";
}

std::string why_wrong_operator(const Step& step, DType dtype) {
  if (!has_running_results(step.op)) return str(info(step.op).name, " is no scan");
  if (dtype == DType::boolean || (step.op == Op::logcumsumexp && !is_float(dtype)))
    return str(info(step.op).name, " of ", dtype);
  if (gives_places(step) && (step.exclusive || step.rhs >= 0))
    return str(info(step.op).name, " starts from nothing, and includes its element");
  if (step.values && combiner(step.op)) return str(info(step.op).name, " has no places");
  return "";
}

std::string why_wrong_start(const Kernel& kernel, const Step& step, DType dtype) {
  if (step.rhs < 0) return "";
  if (step.rhs >= static_cast<int>(kernel.scalars.size()) ||
      kernel.scalars[step.rhs].dtype != compute_type(dtype))
    return str("starts from another dtype than ", compute_type(dtype));
  const std::vector<bool> needed = below(kernel, step.rhs);
  for (size_t id = 0; id < needed.size(); id++) {
    for (int axis : step.inner) {
      if (needed[id] && depends_on(kernel.scalars[id].index, kernel.axes[axis].name))
        return "starts from what differs along its row";
    }
  }
  return "";
}

bool is_within(const Expr& index, const Expr& size) {
  const Interval bounds = index.bounds();
  return bounds.low >= 0 && (!size.is_constant() || bounds.high < size.constant());
}

}  // namespace

bool is_scan(const Step& step) {
  return step.kind == StepKind::Scan ||
         (step.kind == StepKind::Reduce && has_running_results(step.op));
}

int scan_levels(int64_t count) {
  int levels = 1;
  for (int64_t reach = kGroup * kGroup; reach < count; reach *= kGroup) levels++;
  return levels;
}

const Step* values_beside(const Kernel& kernel, const Step& places) {
  if (!gives_places(places)) return nullptr;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Scan && step.values && !step.exclusive && step.rhs < 0 &&
        step.op == places.op && step.value == places.value && step.mask == places.mask &&
        step.inner == places.inner)
      return &step;
  }
  return nullptr;
}

bool is_beside_places(const Kernel& kernel, const Step& step) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [&](const Step& other) { return values_beside(kernel, other) == &step; });
}

std::string why_wrong_mask(const Program& program, const Kernel& kernel, const Step& step) {
  if (step.mask < 0) return "";
  if (step.inner.size() != 1) return "scans under a mask, but not one loop";
  const Scalar& mask = kernel.scalars[step.mask];
  if (mask.kind != ScalarKind::Apply || mask.op != Op::lt)
    return "scans under a mask that is not lt(index, index)";
  const auto place = integer_of(kernel, mask.operands[0]),
             end = integer_of(kernel, mask.operands[1]);
  if (!place || !end || !end->is_constant() || end->constant() < 1 || place->bounds().low < 0 ||
      place->bounds().high < end->constant() - 1)
    return "scans under a mask that does not cover its row";
  const Expr loop = kernel.axes[step.inner[0]].symbol();
  const int64_t stride = coefficient(step.index, loop);
  if (coefficient(*place, loop) != 1 || stride < 1)
    return "scans under a mask that does not count its loop";
  const Expr row = step.index - *place * stride, &size = program.buffers[step.buffer].size;
  return is_within(row, size) && is_within(row + (*end - 1) * stride, size)
             ? ""
             : str(program.buffers[step.buffer].name, "[", step.index, "] leaves the buffer's ",
                   size, " elements, as far as its mask tells");
}

std::string why_wrong_scan(const Program& program, const Kernel& kernel, int number) {
  const Step& step = kernel.steps[number];
  const DType dtype = kernel.scalars[step.value].dtype;
  if (makes_register(step)) return why_wrong_total(step, dtype);
  for (const std::string& reason :
       {why_wrong_operator(step, dtype), why_wrong_start(kernel, step, dtype),
        why_wrong_mask(program, kernel, step)}) {
    if (!reason.empty()) return reason;
  }
  return "";
}

std::optional<WholeRows> whole_rows(const Kernel& kernel, const Step& step,
                                    const std::vector<Axis>& loops) {
  const Scalar& mask = kernel.scalars[step.mask];
  const Expr place = *integer_of(kernel, mask.operands[0]),
             end = *integer_of(kernel, mask.operands[1]);
  const int64_t stride = coefficient(step.index, kernel.axes[step.inner[0]].symbol());
  WholeRows whole{step.index - place * stride, {}};
  std::vector<Axis> pieces;
  Expr points = 1;
  for (const Axis& axis : loops) {
    const bool is_piece = depends_on(place, axis.name);
    if (is_piece && depends_on(whole.index, axis.name)) return std::nullopt;
    if (is_piece) points = points * axis.extent;
    (is_piece ? pieces : whole.loops).push_back(axis);
  }
  if (!covers(place, pieces, points)) return std::nullopt;
  whole.loops.push_back({"p", end});
  whole.index = whole.index + whole.loops.back().symbol() * stride;
  return whole;
}

}  // namespace tiny_compile
