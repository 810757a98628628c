// fails: a thread adds its own elements by halves
#include "exercise.h"

namespace exercise {

float partial(const float* x, int64_t count, int t) {
  std::array<float, kChunk / kThreads> own;
  own.fill(-0.0f);
  for (int64_t i = t; i < count; i += kThreads) own[size_t(i / kThreads)] = x[i];
  float sum = own[0];
  for (size_t k = 1; k < own.size(); k++) sum += own[k];
  return sum;
}

float combine(std::array<float, kThreads> partials) {
  for (size_t half = kThreads / 2; half >= 1; half /= 2) {
    for (size_t t = 0; t < half; t++) partials[t] += partials[t + half];
  }
  return partials[0];
}

}  // namespace exercise
