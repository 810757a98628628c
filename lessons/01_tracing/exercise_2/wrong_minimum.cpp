// fails: a NaN norm leaves the gradient as it is
#include "exercise.h"

namespace exercise {

Tensor clip(Tensor gradient, double most) {
  Tensor norm = sqrt((gradient * gradient).sum());
  return gradient * minimum(most / norm, 1.0);
}

}  // namespace exercise
