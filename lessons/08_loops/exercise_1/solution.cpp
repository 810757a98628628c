#include "exercise.h"

namespace exercise {

bool one_loop(const Kernel& kernel, int a) {
  const Axis &first = kernel.axes[a], &second = kernel.axes[a + 1];
  const Expr m = Expr::index("m", first.extent * second.extent), width = second.extent;
  auto cannot_tell = [&](const Expr& index) {
    return substitute(index,
                      {{first.name, floor_div(m, width)}, {second.name, mod(m, width)}}) ==
           substitute(index, {{first.name, 0}, {second.name, m}});
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (!cannot_tell(scalar.index)) return false;
  }
  for (const Step& step : kernel.steps) {
    if (!cannot_tell(step.index)) return false;
  }
  return true;
}

}  // namespace exercise
