// fails: small distances are squared, large ones are not
#include "exercise.h"

namespace exercise {

Tensor huber_loss(const Operand& prediction, const Operand& target, double delta) {
  const Scope scope(prediction.where);
  const Tensor distance = abs(prediction - target);
  return where(distance <= delta, distance * distance * 0.5, distance * delta);
}

}  // namespace exercise
