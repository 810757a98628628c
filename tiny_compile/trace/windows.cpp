// How is a convolution made of primitives? Windows are a view of the padded image.
#include "tiny_compile/trace/windows.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/custom_vjp.h"

namespace tiny_compile {
namespace {

using Tensors = std::vector<Tensor>;
using TensorsIn = std::span<const Tensor>;

// What sums of its elements run in.
Tensor upcast(const Tensor& x, const Location& where) {
  const bool narrow = is_half(x.dtype()) || !is_float(x.dtype());
  return narrow ? cast_to(x, DType::f32, where) : x;
}

// What a convolution does with its image.
struct Steps {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

// Of x [N, groups*C, H, W]: [N, groups, C, oh, ow, kh, kw].
Tensor windows_of(const Tensor& x, int64_t kh, int64_t kw, const Steps& at) {
  const int64_t p = at.padding, d = at.dilation;
  const Tensor padded = p > 0 ? pad(x, {p, p, p, p}) : x;
  Tensor windows =
      unfold(unfold(padded, 2, (kh - 1) * d + 1, at.stride), 3, (kw - 1) * d + 1, at.stride);
  if (d > 1) windows = slice(slice(windows, 4, 0, {}, d), 5, 0, {}, d);
  const Size n = x.size(0), c = x.size(1) / at.groups;
  return reshape(windows, {n, at.groups, c, windows.size(2), windows.size(3), kh, kw});
}

// Of each image and group, weights [O, C*kh*kw] times windows [C*kh*kw, oh*ow].
Tensor products(const Tensor& x, const Tensor& w, const Steps& at) {
  const int64_t kh = w.size(2), kw = w.size(3);  // a window's are numbers
  const Tensor windows = windows_of(x, kh, kw, at);
  const Size n = x.size(0), oh = windows.size(3), ow = windows.size(4);
  const Size o = w.size(0) / at.groups, depth = w.size(1) * kh * kw;
  const Tensor columns =
      reshape(permute(windows, {0, 1, 2, 5, 6, 3, 4}), {n, at.groups, depth, oh * ow});
  const Tensor y = matmul(reshape(w, {at.groups, o, depth}), columns);
  return reshape(y, {n, w.size(0), oh, ow});
}

// Of each group, gradients [O, N*oh*ow] times windows [N*oh*ow, C*kh*kw].
Tensor weight_gradient(const Tensor& x, const Tensor& w, const Tensor& g, const Steps& at) {
  const Size n = x.size(0), o = w.size(0) / at.groups, places = g.size(2) * g.size(3);
  const Tensor windows =
      permute(windows_of(x, w.size(2), w.size(3), at), {1, 0, 3, 4, 2, 5, 6});
  const Tensor rows =
      reshape(windows, {at.groups, n * places, w.size(1) * w.size(2) * w.size(3)});
  const Tensor each = permute(reshape(g, {n, at.groups, o, places}), {1, 2, 0, 3});
  return reshape(matmul(reshape(each, {at.groups, o, n * places}), rows), w.sizes());
}

// [N, C, h, w] => [N, C, h*step, w*step]: elements with zeros between and behind them.
Tensor set_apart(const Tensor& x, int64_t step) {
  const Size n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  const Tensor zeros = pad(reshape(x, {n, c, h, 1, w, 1}), {0, step - 1, 0, 0, 0, step - 1});
  return reshape(zeros, {n, c, h * step, w * step});
}

Tensor convolution(const Tensor& x, const Tensor& w, const Steps& at);

// Element y of the image meets weight k of window (y + padding - k*dilation)/stride: where the
// windows' gradients stand a stride apart, that is a convolution with the weights transposed around.
Tensor image_gradient(const Tensor& x, const Tensor& w, const Tensor& g, const Steps& at) {
  const int64_t kh = w.size(2), kw = w.size(3);
  const int64_t low[] = {(kh - 1) * at.dilation - at.padding,
                         (kw - 1) * at.dilation - at.padding};
  const int64_t zeros[] = {std::max<int64_t>(low[0], 0), std::max<int64_t>(low[1], 0)};
  Tensor apart = pad(at.stride > 1 ? set_apart(g, at.stride) : g,
                     {zeros[1], zeros[1], zeros[0], zeros[0]});
  for (int64_t k = 0; k < 2; k++) {  // no gradient of what the image was padded with
    const Size start = zeros[k] - low[k];
    const Size needed = x.size(2 + k) + (w.size(2 + k) - 1) * at.dilation;
    if (at.stride > 1 || low[k] < 0) apart = slice(apart, 2 + k, start, start + needed);
  }
  const Size o = w.size(0) / at.groups, c = w.size(1);
  const Tensor transposed =
      transpose(flip(reshape(w, {at.groups, o, c, kh, kw}), {3, 4}), 1, 2);
  return convolution(apart, reshape(transposed, {at.groups * c, o, kh, kw}),
                     {1, 0, at.dilation, at.groups});
}

Tensor convolution(const Tensor& x, const Tensor& w, const Steps& at) {
  const auto value = [&](TensorsIn in) { return Tensors{products(in[0], in[1], at)}; };
  const auto backward = [&](TensorsIn in, TensorsIn, TensorsIn g) {
    const Tensor image = image_gradient(in[0], in[1], g[0], at);
    return Tensors{image, weight_gradient(in[0], in[1], g[0], at)};
  };
  return with_derivative("conv2d", value, backward, {x, w})[0];
}

// x [.., H, W] with its padding around it, and nothing wrong with it.
Tensor pool_image(const char* name, const Tensor& x, Window kernel, Window stride,
                  Window padding, double filler, const Location& where) {
  if (x.rank() < 3 || x.rank() > 4 || !is_float(x.dtype()))
    fail_at(current_place(where), str(name, ": wants floats [N,C,H,W] or [C,H,W], not ",
                                      x.dtype(), "[", join(x.sizes(), ","), "]"));
  if (kernel.height < 1 || kernel.width < 1 || stride.height < 1 || stride.width < 1)
    fail_at(current_place(where), str(name, ": kernel and stride must be positive"));
  if (padding.height < 0 || padding.width < 0 || 2 * padding.height > kernel.height ||
      2 * padding.width > kernel.width)
    fail_at(current_place(where),
            str(name, ": a padding of at most half the kernel's ", kernel.height, " x ",
                kernel.width, ", not ", padding.height, " x ", padding.width));
  const Tensor padded =
      padding.height == 0 && padding.width == 0
          ? x
          : pad(x, {padding.width, padding.width, padding.height, padding.height}, filler);
  if (padded.size(-2) < kernel.height || padded.size(-1) < kernel.width)
    fail_at(current_place(where), str(name, ": the kernel, ", kernel.height, " x ",
                                      kernel.width, ", is larger than the padded image"));
  return padded;
}

// [.., oh, ow, kh, kw]: what each place of the result is made of.
Tensor pool_windows(const Tensor& image, Window kernel, Window stride) {
  return unfold(unfold(image, image.rank() - 2, kernel.height, stride.height), image.rank() - 1,
                kernel.width, stride.width);
}

// An image in pieces of a stride by a stride, and with each piece the windows that lie over it, in
// order: [.., pieces down, 1, pieces across, 1, windows down, windows across].
Tensor over_pieces(const Tensor& of_windows, Window kernel, Window stride, double filler) {
  const int64_t rank = of_windows.rank();
  const int64_t down = ceil_divide(kernel.height, stride.height);
  const int64_t across = ceil_divide(kernel.width, stride.width);
  const Tensor padded = pad(of_windows, {across - 1, across - 1, down - 1, down - 1}, filler);
  const Tensor windows = unfold(unfold(padded, rank - 2, down, 1), rank - 1, across, 1);
  return unsqueeze(unsqueeze(windows, rank - 1), rank + 1);
}

// Which element of the windows over it each one of a piece is, along an axis: [stride, windows]. The
// first of the windows began first.
Tensor places_along(int64_t kernel, int64_t stride, const Device& device) {
  const int64_t windows = ceil_divide(kernel, stride);
  const Tensor within = unsqueeze(arange(stride), 1), first = arange(windows) * stride;
  return copy_to(within + flip(first, {0}), device);
}

// Each element has the gradients of the windows whose first maximum it is.
Tensor max_pool_gradient(const Tensor& image, const Tensor& g, Window kernel, Window stride) {
  const Tensor place = argmax(flatten(pool_windows(image, kernel, stride), -2, -1), -1);
  const Tensor row = places_along(kernel.height, stride.height, image.device());
  const Tensor column = places_along(kernel.width, stride.width, image.device());
  const Tensor j = reshape(column, {1, 1, 1, stride.width, 1, column.size(1)});
  const Tensor i = reshape(row, {1, stride.height, 1, 1, row.size(1), 1});
  const Tensor own = where(j < kernel.width, i * kernel.width + j, -2);
  const Tensor hit = over_pieces(place, kernel, stride, -1) == own;
  const Tensor sums = sum(where(hit, over_pieces(g, kernel, stride, 0), 0.0), {-2, -1});
  SizeList shape = image.sizes();
  const size_t rank = shape.size();
  shape[rank - 2] = sums.size(-4) * stride.height,
               shape[rank - 1] = sums.size(-2) * stride.width;
  const Tensor longer = pad(reshape(sums, shape), {0, stride.width - 1, 0, stride.height - 1});
  return slice(slice(longer, -2, 0, image.size(-2)), -1, 0, image.size(-1));
}

}  // namespace

Tensor conv2d(const Operand& x, const Operand& weight, const Tensor& bias, int64_t stride,
              int64_t padding, int64_t dilation, int64_t groups) {
  const Scope scope(x.where);
  const Tensor image = x.captured(), w = weight.captured();
  if (image.rank() != 4 || w.rank() != 4 || groups < 1 || image.size(1) != w.size(1) * groups ||
      w.size(0) % groups != 0)
    fail_at(current_place(x.where), str("conv2d: x [N,C,H,W] = [", join(image.sizes(), ","),
                                        "] does not fit weight [O,C/groups,kh,kw] = [",
                                        join(w.sizes(), ","), "] with ", groups, " groups"));
  const Tensor y =
      convolution(image, w, {stride, std::max<int64_t>(padding, 0), dilation, groups});
  return bias.defined() ? y + reshape(bias, {1, w.size(0), 1, 1}) : y;
}

Tensor max_pool2d(const Operand& x, Window kernel) { return max_pool2d(x, kernel, kernel); }

Tensor max_pool2d(const Operand& x, Window kernel, Window stride, Window padding) {
  const Scope scope(x.where);
  const Tensor image =
      pool_image("max_pool2d", x.captured(), kernel, stride, padding, -HUGE_VAL, x.where);
  const auto value = [&](TensorsIn in) {
    return Tensors{max(pool_windows(in[0], kernel, stride), {-2, -1})};
  };
  const auto backward = [&](TensorsIn in, TensorsIn, TensorsIn g) {
    return Tensors{max_pool_gradient(in[0], g[0], kernel, stride)};
  };
  return with_derivative("max_pool2d", value, backward, {image})[0];
}

Tensor avg_pool2d(const Operand& x, Window kernel) { return avg_pool2d(x, kernel, kernel); }

// The sum over the window; without the padding, over how many elements are none of it.
Tensor avg_pool2d(const Operand& x, Window kernel, Window stride, Window padding,
                  bool count_include_pad) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  const auto summed = [&](const Tensor& image) {
    const Tensor padded = pool_image("avg_pool2d", image, kernel, stride, padding, 0, x.where);
    return sum(pool_windows(padded, kernel, stride), {-2, -1});
  };
  const Tensor total = summed(v);
  if (!count_include_pad) return cast_to(total / summed(ones_like(v)), tensor.dtype(), x.where);
  const double all = static_cast<double>(kernel.height * kernel.width);
  return cast_to(total / all, tensor.dtype(), x.where);
}

}  // namespace tiny_compile
