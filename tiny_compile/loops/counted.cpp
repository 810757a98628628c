// When are two kernels one, but for their sizes? When both count through flat points:
//
//   kernel mul_3 rows(i0: 768) { store y[i0] = mul(load x[i0], load s[0]) }
//   kernel mul_5 rows(i0: 2304) { store z[i0] = mul(load w[i0], load s[0]) }
// =>
//   kernel  rows(i0: 536870912) { store [2][i0] = mul(load [0][i0], load [1][0]) }     twice
//
// An optimiser's tensors are such kernels. The extent stands for "as many as the launch says": it
// is the largest that ints count, so that packs and the type of indices do not depend on sizes.
#include "tiny_compile/loops/counted.h"

#include <algorithm>

namespace tiny_compile {
namespace {

bool is_own_or_single(const Kernel& kernel, const Expr& index) {
  return index.is_constant() || index == kernel.axes[0].symbol();
}

bool suits_any_count(const Kernel& kernel, const Scalar& scalar) {
  switch (scalar.kind) {
    case ScalarKind::Constant:
    case ScalarKind::Apply: return true;
    case ScalarKind::Load: return is_plain(scalar) && is_own_or_single(kernel, scalar.index);
    case ScalarKind::Index:
      return scalar.operands.empty() && is_own_or_single(kernel, scalar.index);
    case ScalarKind::Philox: return is_own_or_single(kernel, scalar.index);
    default: return false;
  }
}

}  // namespace

bool is_counted(const Kernel& kernel) {
  const Schedule schedule = schedule_of(kernel);
  if (schedule.strategy != Strategy::Pointwise || extent_of(schedule.rows, Level::Serial) > 1 ||
      kernel.rows != 1 || kernel.axes.size() != 1 ||
      kernel.axes[0].extent.bounds().high > kMostCounted)
    return false;
  const auto stores_own = [&](const Step& step) {
    return step.kind == StepKind::Store && step.index == kernel.axes[0].symbol();
  };
  const auto suits = [&](const Scalar& scalar) { return suits_any_count(kernel, scalar); };
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), stores_own) &&
         std::all_of(kernel.scalars.begin(), kernel.scalars.end(), suits);
}

LoneKernel for_any_count(LoneKernel lone) {
  Kernel& kernel = lone.program.kernels[0];
  const Axis any = {kernel.axes[0].name, kMostCounted};
  const auto grow = [&](int buffer, Expr& index) {
    if (index.is_constant()) return;
    index = any.symbol();
    if (buffer < 0) return;
    Buffer& counted = lone.program.buffers[buffer];
    counted.size = any.extent;
    counted.type.shape = {any.extent};
  };
  for (Scalar& scalar : kernel.scalars) grow(scalar.buffer, scalar.index);
  for (Step& step : kernel.steps) grow(step.buffer, step.index);
  kernel.axes[0] = any;
  return lone;
}

KernelKey work_of(const Program& program, const Kernel& kernel) {
  LoneKernel lone = lone_kernel(program, kernel);
  return key_of(is_counted(kernel) ? for_any_count(std::move(lone)) : std::move(lone));
}

}  // namespace tiny_compile
