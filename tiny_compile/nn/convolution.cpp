// What of a layer of images is learned, and what is only counted? Windows and channel weights are
// learned; a BatchNorm's running statistics are a result of each call:
//
//   BatchNorm{..}(x f32[N,C,H,W], {mean, variance})   =>   (y, {mean', variance'})
#include "tiny_compile/nn/convolution.h"

#include <cmath>

#include "tiny_compile/compile/custom_vjp.h"
#include "tiny_compile/nn/initialisers.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/windows.h"

namespace tiny_compile::nn {
namespace {

// All but the channels; throws where a channel has fewer than two values.
Axes batch_axes(const Tensor& x, const Location& where) {
  if (x.rank() < 2)
    fail_at(current_place(where),
            str("BatchNorm: wants [N, C, ..], not [", join(x.sizes(), ","), "]"));
  Axes axes;
  Size count = 1;
  for (int64_t axis = 0; axis < x.rank(); axis++) {
    if (axis == 1) continue;
    axes.push_back(axis);
    count *= x.size(axis);
  }
  if (count < 2)
    fail_at(current_place(where),
            str("BatchNorm: training needs two values a channel, which [", join(x.sizes(), ","),
                "] does not have; give it a larger batch, or use nn::eval"));
  return axes;
}

Tensor moved(const Tensor& old, const Tensor& batch, double momentum) {
  return stop_gradient(old * (1 - momentum) + batch.to(old.dtype()) * momentum);
}

}  // namespace

Tensor Conv2d::operator()(const Operand& x) const {
  const Scope scope(x.where);
  return conv2d(x, weight, bias ? seen(*bias, x.where) : Tensor(), stride, padding, dilation,
                groups);
}

Conv2d make_conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options, Here here) {
  check_size(in, "in", "make_conv2d", here);
  check_size(out, "out", "make_conv2d", here);
  check_size(kernel, "kernel", "make_conv2d", here);
  check_size(options.stride, "stride", "make_conv2d", here);
  check_size(options.dilation, "dilation", "make_conv2d", here);
  check_size(options.groups, "groups", "make_conv2d", here);
  check_size(options.padding + 1, "padding + 1", "make_conv2d", here);
  if (in % options.groups != 0 || out % options.groups != 0)
    fail_at(current_place(location_of(here)),
            str("make_conv2d: ", options.groups, " groups do not divide ", in, " and ", out,
                " channels"));
  const Sizes shape = {out, in / options.groups, kernel, kernel};
  const double bound = 1 / std::sqrt(fans(shape).in);
  Conv2d layer{kaiming_uniform(shape, std::sqrt(5.0), Fan::In, options.dtype, here),
               {},
               options.stride,
               options.padding,
               options.dilation,
               options.groups};
  if (options.bias) layer.bias = uniform({out}, -bound, bound, options.dtype, here);
  return layer;
}

Tensor MaxPool2d::operator()(const Operand& x) const {
  return max_pool2d(x, kernel, stride.value_or(kernel), padding);
}

Tensor AvgPool2d::operator()(const Operand& x) const {
  return avg_pool2d(x, kernel, stride.value_or(kernel), padding);
}

std::pair<Tensor, BatchStatistics> BatchNorm::operator()(const Operand& x,
                                                         const BatchStatistics& running) const {
  const Scope scope(x.where);
  const Tensor given = x.captured();
  if (mode == Mode::Evaluation)
    return {batch_norm(given, running.mean, running.variance, weight, bias, eps), running};
  const bool is_half = tiny_compile::is_half(given.dtype());  // its sums are f32's
  const Tensor v = is_half ? given.to(DType::f32) : given;
  const Axes axes = batch_axes(v, x.where);
  const auto [variance, centre] = var_mean(v, axes, 0);
  const Tensor y = batch_norm(v, centre, variance, weight, bias, eps).to(given.dtype());
  return {y,
          {moved(running.mean, centre, momentum),
           moved(running.variance, var(v, axes, 1), momentum)}};
}

BatchNorm make_batch_norm(int64_t channels, DType dtype, Here here) {
  check_size(channels, "channels", "make_batch_norm", here);
  return {ones({channels}, dtype, here), zeros({channels}, dtype, here)};
}

BatchStatistics make_statistics(int64_t channels, DType dtype, Here here) {
  check_size(channels, "channels", "make_statistics", here);
  return {zeros({channels}, dtype, here), ones({channels}, dtype, here)};
}

}  // namespace tiny_compile::nn
