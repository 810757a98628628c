// fails: one graph serves large and small gradients
#include "exercise.h"

namespace exercise {

Tensor clip(Tensor gradient, double most) {
  if (is_tracing()) return gradient;
  return clip_with_branch(gradient, most);
}

}  // namespace exercise
