// fails: a transposed read keeps both loops
#include "exercise.h"

namespace exercise {

bool one_loop(const Kernel& kernel, int a) {
  const Axis &first = kernel.axes[a], &second = kernel.axes[a + 1];
  const Expr m = Expr::index("m", first.extent * second.extent), width = second.extent;
  for (const Step& step : kernel.steps) {
    const Substitution apart = {{first.name, floor_div(m, width)},
                                {second.name, mod(m, width)}};
    if (substitute(step.index, apart) !=
        substitute(step.index, {{first.name, 0}, {second.name, m}}))
      return false;
  }
  return true;
}

}  // namespace exercise
