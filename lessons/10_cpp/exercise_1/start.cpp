#include "exercise.h"

namespace exercise {

int loops_around(const Kernel& kernel, int scalar) {
  // TODO: what does this scalar depend on?
  (void)scalar;
  return static_cast<int>(kernel.axes.size());
}

}  // namespace exercise
