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
  how.axes = {{inner.name,
               result.axes[kernel.rows].symbol() * 4 + result.axes[kernel.rows + 1].symbol()}};
  // TODO: copy the scalars, with a mask where there is a tail; then mend the steps.
  return kernel;
}

}  // namespace exercise
