// Which learning rate has a step? Plain functions of the step's number, 0 for the first; the
// rate goes into the compiled step as a number, so it may be any function of yours as well.
//
//   const auto rate = nn::warmup_cosine(1e-3, 100, 2000);
//   rate(0) = 1e-5, rate(99) = 1e-3, rate(1050) = about 5e-4, rate(2000) = 0 and so on
#pragma once

#include <cstdint>
#include <functional>

namespace tiny_compile::nn {

using Rate = std::function<double(int64_t step)>;

Rate constant_rate(double rate);
// Rises by peak / warmup a step, then falls as half a cosine to `last` at step `steps`.
Rate warmup_cosine(double peak, int64_t warmup, int64_t steps, double last = 0);
// A straight line from `first` at step 0 to `last` at step `steps`.
Rate linear_rate(double first, double last, int64_t steps);
// Times `factor` every `every` steps.
Rate step_rate(double first, int64_t every, double factor = 0.1);

}  // namespace tiny_compile::nn
