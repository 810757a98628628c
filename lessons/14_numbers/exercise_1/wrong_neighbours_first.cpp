// fails: 32 elements, one a thread, are combined by halves
#include "exercise.h"

namespace exercise {

float partial(const float* x, int64_t count, int t) {
  std::array<float, kChunk / kThreads> own;
  own.fill(-0.0f);
  for (int64_t i = t; i < count; i += kThreads) own[size_t(i / kThreads)] = x[i];
  for (size_t half = own.size() / 2; half >= 1; half /= 2) {
    for (size_t k = 0; k < half; k++) own[k] += own[k + half];
  }
  return own[0];
}

float combine(std::array<float, kThreads> partials) {
  for (size_t step = 1; step < kThreads; step *= 2) {
    for (size_t t = 0; t < kThreads; t += 2 * step) partials[t] += partials[t + step];
  }
  return partials[0];
}

}  // namespace exercise
