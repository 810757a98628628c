// How does a learning rate change from step to step?
//
//   warmup_cosine(peak 8, warmup 4, steps 12):  2 4 6 8 | 8 7.7 6.8 5.5 4 2.5 1.2 0.3 | 0 0 ..
//
// The first step's rate is not 0: it would be wasted. Behind the last step the rate stays.
#include "tiny_compile/nn/schedule.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/error.h"

namespace tiny_compile::nn {
namespace {

// How much of the way from `begin` to `end` is behind `step`, in [0, 1].
double share(int64_t step, int64_t begin, int64_t end) {
  if (step >= end) return 1;
  return static_cast<double>(std::max(step, begin) - begin) / static_cast<double>(end - begin);
}

}  // namespace

Rate constant_rate(double rate) {
  return [=](int64_t) { return rate; };
}

Rate warmup_cosine(double peak, int64_t warmup, int64_t steps, double last) {
  if (warmup < 0 || steps < warmup)
    fail("warmup_cosine: a warm-up of ", warmup, " steps does not fit into ", steps);
  return [=](int64_t step) {
    if (step < warmup)
      return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double half_turn = 3.14159265358979323846 * share(step, warmup, steps);
    return last + (peak - last) * 0.5 * (1 + std::cos(half_turn));
  };
}

Rate linear_rate(double first, double last, int64_t steps) {
  if (steps < 0) fail("linear_rate: ", steps, " steps");
  return [=](int64_t step) { return first + (last - first) * share(step, 0, steps); };
}

Rate step_rate(double first, int64_t every, double factor) {
  if (every < 1) fail("step_rate: every ", every, " steps is never; give at least 1");
  return [=](int64_t step) {
    return first * std::pow(factor, static_cast<double>(std::max<int64_t>(step, 0) / every));
  };
}

}  // namespace tiny_compile::nn
