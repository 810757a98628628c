#include "exercise.h"

namespace exercise {

Tensor huber_loss(const Operand& prediction, const Operand& target, double delta) {
  Tensor distance = abs(prediction - target);
  // TODO: squared where it is small; and whose line are these nodes?
  return distance * delta;
}

}  // namespace exercise
