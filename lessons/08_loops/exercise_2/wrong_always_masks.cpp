// fails: four divides 1000: no mask
#include "exercise.h"

namespace exercise {

Kernel by_fours(const Kernel& kernel) {
  Kernel result = kernel;  // rows stay; scalars, steps and the inner axis are made anew
  const Axis inner = kernel.axes[kernel.rows];
  result.axes.resize(static_cast<size_t>(kernel.rows));
  result.axes.push_back({"outer", ceil_div(inner.extent, 4)});
  result.axes.push_back({"four", 4});
  result.scalars.clear();
  ScalarTable table(result);
  ScalarMapping how;
  const Expr j = result.axes[kernel.rows].symbol() * 4 + result.axes[kernel.rows + 1].symbol();
  how.axes = {{inner.name, j}};
  const bool tail = true;
  int exists = -1;
  if (tail)
    exists = table.apply(Op::lt, DType::boolean, {table.index(j), table.index(inner.extent)});
  how.mask = exists;
  const std::vector<int> inside = clone_with_mapping(kernel, {}, how, table);
  how.mask = -1;
  const std::vector<int> outside = clone_with_mapping(kernel, {}, how, table);
  for (Step& step : result.steps) {
    if (step.inner.empty()) {
      step.value = outside[step.value];
      continue;
    }
    step.inner = {kernel.rows, kernel.rows + 1};
    step.value = inside[step.value];
    const DType dtype = result.scalars[step.value].dtype;
    if (tail) {
      const int nothing = table.constant(identity(step.op, dtype));
      step.value = table.apply(Op::where, dtype, {exists, step.value, nothing});
    }
  }
  return normalize(std::move(result));
}

}  // namespace exercise
