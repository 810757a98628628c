// fails: every second element is still one loop
#include "exercise.h"

namespace exercise {

bool one_loop(const Kernel& kernel, int a) {
  const Axis &first = kernel.axes[a], &second = kernel.axes[a + 1];
  const Expr flat = first.symbol() * second.extent + second.symbol();
  auto fits = [&](const Expr& index) {
    const bool knows = depends_on(index, first.name) || depends_on(index, second.name);
    const Expr rest = index - flat;
    return !knows || (!depends_on(rest, first.name) && !depends_on(rest, second.name));
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (!fits(scalar.index)) return false;
  }
  for (const Step& step : kernel.steps) {
    if (!fits(step.index)) return false;
  }
  return true;
}

}  // namespace exercise
