#include "exercise.h"

namespace exercise {

bool one_loop(const Kernel& kernel, int a) {
  // TODO: may rows a and a + 1 become one?
  (void)kernel, (void)a;
  return true;
}

}  // namespace exercise
