// fails: a loop inside a division is seen
#include "exercise.h"

namespace exercise {
namespace {

int64_t coefficient(const Expr& index, const Axis& axis) {
  for (const Term& term : terms(index)) {
    if (term.factor == axis.symbol()) return term.coefficient;
  }
  return 0;
}

}  // namespace

bool one_loop(const Kernel& kernel, int a) {
  const Axis &first = kernel.axes[a], &second = kernel.axes[a + 1];
  auto fits = [&](const Expr& index) {
    return coefficient(index, first) == coefficient(index, second) * second.extent.constant();
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
