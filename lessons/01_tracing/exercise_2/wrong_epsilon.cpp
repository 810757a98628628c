// fails: one graph serves large and small gradients
#include "exercise.h"

namespace exercise {

Tensor clip(Tensor gradient, double most) {
  Tensor norm = sqrt((gradient * gradient).sum()) + 1e-3;
  return where(norm > most, gradient * (most / norm), gradient);
}

}  // namespace exercise
