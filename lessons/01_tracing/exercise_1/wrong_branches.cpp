// fails: it can be traced
#include "exercise.h"

namespace exercise {

Tensor huber_loss(const Operand& prediction, const Operand& target, double delta) {
  const Scope scope(prediction.where);
  const Tensor distance = abs(prediction - target);
  if (distance.max().item<double>() <= delta) return distance * distance * 0.5;
  const Tensor small = distance * distance * 0.5;
  const Tensor large = (distance - delta / 2) * delta;
  return where(distance <= delta, small, large);
}

}  // namespace exercise
