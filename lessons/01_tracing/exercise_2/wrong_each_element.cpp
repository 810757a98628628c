// fails: one graph serves large and small gradients
#include "exercise.h"

namespace exercise {

Tensor clip(Tensor gradient, double most) {
  Tensor norm = sqrt((gradient * gradient).sum());
  return where(abs(gradient) > most, gradient * (most / norm), gradient);
}

}  // namespace exercise
