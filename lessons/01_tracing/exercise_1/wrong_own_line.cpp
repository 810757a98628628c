// fails: every node belongs to the line of the caller
#include "exercise.h"

namespace exercise {

Tensor huber_loss(const Operand& prediction, const Operand& target, double delta) {
  const Tensor distance = abs(prediction - target);
  const Tensor small = distance * distance * 0.5;
  const Tensor large = (distance - delta / 2) * delta;
  return where(distance <= delta, small, large);
}

}  // namespace exercise
