// fails: a thread reads its own elements only
#include "exercise.h"

namespace exercise {

float partial(const float* x, int64_t count, int t) {
  std::array<float, kChunk / kThreads> own;
  own.fill(-0.0f);
  for (int64_t k = 0; k < kThreads && kThreads * t + k < count; k++)
    own[size_t(k)] = x[kThreads * t + k];
  for (size_t half = own.size() / 2; half >= 1; half /= 2) {
    for (size_t k = 0; k < half; k++) own[k] += own[k + half];
  }
  return own[0];
}

float combine(std::array<float, kThreads> partials) {
  for (size_t half = kThreads / 2; half >= 1; half /= 2) {
    for (size_t t = 0; t < half; t++) partials[t] += partials[t + half];
  }
  return partials[0];
}

}  // namespace exercise
