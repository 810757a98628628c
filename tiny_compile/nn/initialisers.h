// First values of weights: PyTorch's torch.nn.init, as functions from a shape to a tensor.
#pragma once

#include "tiny_compile/trace/creation.h"

namespace tiny_compile::nn {

// How many elements one output is a sum of, and how many outputs an input goes into, of a weight
// [out, in, window..]. Throws tc::Error at `here` for fewer than two axes.
struct Fans {
  double in = 0, out = 0;
};
Fans fans(const Sizes& shape, Here here = Here::current());
enum class Fan : uint8_t { In, Out };

// All draw from tc::manual_seed's numbers, in f32, and throw tc::Error at `here` for a dtype that is
// no float.
Tensor uniform(const Sizes& shape, double low, double high, DType dtype = DType::f32,
               Here here = Here::current());
Tensor normal(const Sizes& shape, double mean, double deviation, DType dtype = DType::f32,
              Here here = Here::current());
// Of a normal distribution what lies in [low, high], in units of x.
Tensor truncated_normal(const Sizes& shape, double mean, double deviation, double low,
                        double high, DType dtype = DType::f32, Here here = Here::current());

// He, Zhang, Ren, Sun 2015: the variance gain^2 / fan keeps the size of activations behind a
// leaky_relu of this slope, gain^2 = 2 / (1 + slope^2). Uniform in +-sqrt(3) deviations.
Tensor kaiming_uniform(const Sizes& shape, double slope = 0, Fan fan = Fan::In,
                       DType dtype = DType::f32, Here here = Here::current());
Tensor kaiming_normal(const Sizes& shape, double slope = 0, Fan fan = Fan::In,
                      DType dtype = DType::f32, Here here = Here::current());

// Glorot, Bengio 2010: the variance 2 gain^2 / (fan_in + fan_out).
Tensor xavier_uniform(const Sizes& shape, double gain = 1, DType dtype = DType::f32,
                      Here here = Here::current());
Tensor xavier_normal(const Sizes& shape, double gain = 1, DType dtype = DType::f32,
                     Here here = Here::current());

}  // namespace tiny_compile::nn
