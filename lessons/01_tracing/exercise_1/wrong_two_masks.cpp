// fails: NaN stays NaN and infinity stays infinity
#include "exercise.h"

namespace exercise {

Tensor huber_loss(const Operand& prediction, const Operand& target, double delta) {
  const Scope scope(prediction.where);
  const Tensor distance = abs(prediction - target);
  const Tensor small = where(distance <= delta, distance * distance * 0.5, 0.0);
  const Tensor large = where(distance > delta, (distance - delta / 2) * delta, 0.0);
  return small + large;
}

}  // namespace exercise
