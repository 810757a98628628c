// Layers of images: Conv2d, BatchNorm, MaxPool2d, AvgPool2d. x is [N, C, H, W].
#pragma once

#include <optional>
#include <utility>

#include "tiny_compile/nn/layers.h"

namespace tiny_compile::nn {

struct Conv2d {
  static constexpr const char* names[] = {"weight",  "bias",     "stride",
                                          "padding", "dilation", "groups"};
  Tensor weight;                    // [out, in / groups, height, width]
  std::optional<Tensor> bias = {};  // [out]
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  Tensor operator()(const Operand& x) const;
};

struct Conv2dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  DType dtype = DType::f32;
};
// With a square window, weight and bias uniform in +-1/sqrt(in / groups * kernel * kernel). Throws
// tc::Error at `here` for a size below 1 and groups that do not divide in and out.
Conv2d make_conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {},
                   Here here = Here::current());

// Without a stride, windows do not overlap.
struct MaxPool2d {
  static constexpr const char* names[] = {"kernel", "stride", "padding"};
  int64_t kernel = 2;
  std::optional<int64_t> stride = {};
  int64_t padding = 0;
  Tensor operator()(const Operand& x) const;
};

struct AvgPool2d {
  static constexpr const char* names[] = {"kernel", "stride", "padding"};
  int64_t kernel = 2;
  std::optional<int64_t> stride = {};
  int64_t padding = 0;  // counts as zeros
  Tensor operator()(const Operand& x) const;
};

// What a BatchNorm has seen: no parameter, so that it is no member of it. It comes in and goes out.
struct BatchStatistics {
  static constexpr const char* names[] = {"running_mean", "running_var"};
  Tensor mean, variance;  // [channels]
};

// Ioffe and Szegedy 2015, of axis 1 of [N, C] or [N, C, ..]. In training by the batch's own mean and
// variance (over n, not n - 1), and running statistics become (1 - momentum) * old + momentum *
// the batch's (variance over n - 1), as in PyTorch; in evaluation by the running ones, which stay.
struct BatchNorm {
  static constexpr const char* names[] = {"weight", "bias", "eps", "momentum", "mode"};
  Tensor weight, bias;  // [channels]
  double eps = 1e-5, momentum = 0.1;
  Mode mode = Mode::Training;
  // Throws tc::Error in training where a channel has fewer than two values.
  std::pair<Tensor, BatchStatistics> operator()(const Operand& x,
                                                const BatchStatistics& running) const;
};
BatchNorm make_batch_norm(int64_t channels, DType dtype = DType::f32,
                          Here here = Here::current());  // ones and zeros
BatchStatistics make_statistics(int64_t channels, DType dtype = DType::f32,
                                Here here = Here::current());  // mean 0, variance 1

}  // namespace tiny_compile::nn
