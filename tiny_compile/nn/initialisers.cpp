// What should a weight be before anything is learned? Random, so that no two outputs are alike,
// and of a size at which a layer's outputs vary as much as its inputs:
//
//   kaiming_uniform({10, 784}, sqrt(5))   =>   f32[10,784], uniform in +-1/sqrt(784)
//
// Formulas: torch.nn.init.
#include "tiny_compile/nn/initialisers.h"

#include <cmath>

namespace tiny_compile::nn {
namespace {

double kaiming_deviation(const Sizes& shape, double slope, Fan fan, Here here) {
  const Fans both = fans(shape, here);
  return std::sqrt(2 / (1 + slope * slope) / (fan == Fan::In ? both.in : both.out));
}

double xavier_deviation(const Sizes& shape, double gain, Here here) {
  const Fans both = fans(shape, here);
  return gain * std::sqrt(2 / (both.in + both.out));
}

// The share of a normal distribution below z deviations.
double share_below(double z) { return (1 + std::erf(z / std::sqrt(2.0))) / 2; }

void check_float(DType dtype, Here here) {
  if (!is_float(dtype))
    fail_at(current_place(location_of(here)),
            str("weights are floats: ", dtype, " has no such distribution"));
}

}  // namespace

Fans fans(const Sizes& shape, Here here) {
  if (shape.size() < 2)
    fail_at(current_place(location_of(here)),
            str("a weight [", join(shape, ","),
                "] has no fan_in and fan_out: it needs two axes, "
                "[out, in, window..]; use nn::uniform or nn::normal"));
  double window = 1;
  for (size_t k = 2; k < shape.size(); k++) window *= static_cast<double>(shape[k]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

Tensor uniform(const Sizes& shape, double low, double high, DType dtype, Here here) {
  check_float(dtype, here);
  const Location where = location_of(here);
  const Scope scope(where);
  return (rand(shape) * (high - low) + low).to(dtype);
}

Tensor normal(const Sizes& shape, double mean, double deviation, DType dtype, Here here) {
  check_float(dtype, here);
  const Location where = location_of(here);
  const Scope scope(where);
  return (randn(shape) * deviation + mean).to(dtype);
}

// The inverse of the distribution's share at a number drawn between those of low and high.
Tensor truncated_normal(const Sizes& shape, double mean, double deviation, double low,
                        double high, DType dtype, Here here) {
  if (!(low < high) || !(deviation > 0))
    fail_at(current_place(location_of(here)),
            str("truncated_normal: nothing lies in [", low, ", ", high,
                "] with a deviation of ", deviation));
  check_float(dtype, here);
  const Location where = location_of(here);
  const Scope scope(where);
  const double first = 2 * share_below((low - mean) / deviation) - 1;
  const double last = 2 * share_below((high - mean) / deviation) - 1;
  const Tensor share = rand(shape, DType::f64) * (last - first) + first;
  const Tensor x = erfinv(share) * (deviation * std::sqrt(2.0)) + mean;
  return clamp(x, low, high).to(dtype);
}

Tensor kaiming_uniform(const Sizes& shape, double slope, Fan fan, DType dtype, Here here) {
  const double bound = std::sqrt(3.0) * kaiming_deviation(shape, slope, fan, here);
  return uniform(shape, -bound, bound, dtype, here);
}

Tensor kaiming_normal(const Sizes& shape, double slope, Fan fan, DType dtype, Here here) {
  return normal(shape, 0, kaiming_deviation(shape, slope, fan, here), dtype, here);
}

Tensor xavier_uniform(const Sizes& shape, double gain, DType dtype, Here here) {
  const double bound = std::sqrt(3.0) * xavier_deviation(shape, gain, here);
  return uniform(shape, -bound, bound, dtype, here);
}

Tensor xavier_normal(const Sizes& shape, double gain, DType dtype, Here here) {
  return normal(shape, 0, xavier_deviation(shape, gain, here), dtype, here);
}

}  // namespace tiny_compile::nn
