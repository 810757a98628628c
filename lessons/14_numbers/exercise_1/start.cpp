#include "exercise.h"

namespace exercise {

float partial(const float* x, int64_t count, int t) {
  float sum = -0.0f;
  // TODO: these are the right elements in the wrong order, here and below.
  for (int64_t i = t; i < count; i += kThreads) sum += x[i];
  return sum;
}

float combine(std::array<float, kThreads> partials) {
  float sum = -0.0f;
  for (float value : partials) sum += value;
  return sum;
}

}  // namespace exercise
