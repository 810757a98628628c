// How is a convolution made of primitives? Windows are a view of the padded image.
#include "tiny_compile/trace/windows.h"

#include <cmath>

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

// [.., oh, ow, kh, kw]: what each place of the result is made of.
Tensor pooled_windows(const char* name, const Tensor& x, Window kernel, Window stride,
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
  return unfold(unfold(padded, x.rank() - 2, kernel.height, stride.height), x.rank() - 1,
                kernel.width, stride.width);
}

}  // namespace

// Windows [N, C, oh, ow, kh, kw] as rows [N*oh*ow, C*kh*kw], times the weights as columns.
Tensor conv2d(const Operand& x, const Operand& weight, const Tensor& bias, int64_t stride,
              int64_t padding, int64_t dilation, int64_t groups) {
  const Scope scope(x.where);
  Tensor tensor = x.captured();
  const Tensor w = weight.captured();
  if (tensor.rank() != 4 || w.rank() != 4 || groups < 1 ||
      tensor.size(1) != w.size(1) * groups || w.size(0) % groups != 0)
    fail_at(current_place(x.where), str("conv2d: x [N,C,H,W] = [", join(tensor.sizes(), ","),
                                        "] does not fit weight [O,C/groups,kh,kw] = [",
                                        join(w.sizes(), ","), "] with ", groups, " groups"));
  const Size n = tensor.size(0), c = w.size(1), o = w.size(0) / groups;
  const int64_t kh = w.size(2), kw = w.size(3);  // a window's are numbers
  if (padding > 0) tensor = pad(tensor, {padding, padding, padding, padding});
  Tensor windows = unfold(unfold(tensor, 2, (kh - 1) * dilation + 1, stride), 3,
                          (kw - 1) * dilation + 1, stride);
  if (dilation > 1) windows = slice(slice(windows, 4, 0, {}, dilation), 5, 0, {}, dilation);
  const Size oh = windows.size(2), ow = windows.size(3);
  const Tensor grouped = reshape(windows, {n, groups, c, oh, ow, kh, kw});
  const Tensor rows =
      reshape(permute(grouped, {1, 0, 3, 4, 2, 5, 6}), {groups, n * oh * ow, c * kh * kw});
  const Tensor columns = transpose(reshape(w, {groups, o, c * kh * kw}), 1, 2);
  Tensor y = reshape(matmul(rows, columns), {groups, n, oh, ow, o});
  y = reshape(permute(y, {1, 0, 4, 2, 3}), {n, groups * o, oh, ow});
  return bias.defined() ? y + reshape(bias, {1, groups * o, 1, 1}) : y;
}

Tensor max_pool2d(const Operand& x, Window kernel) { return max_pool2d(x, kernel, kernel); }

Tensor max_pool2d(const Operand& x, Window kernel, Window stride, Window padding) {
  const Scope scope(x.where);
  const Tensor windows =
      pooled_windows("max_pool2d", x.captured(), kernel, stride, padding, -HUGE_VAL, x.where);
  const auto backward = [](TensorsIn in, TensorsIn,
                           TensorsIn g) {  // the first of equals has all
    const int64_t height = in[0].size(-2), width = in[0].size(-1);
    const Tensor flat = flatten(in[0], -2, -1);
    const Tensor places = copy_to(arange(height * width), in[0].device());
    const Tensor hit = places == unsqueeze(argmax(flat, -1), -1);
    return Tensors{reshape(where(hit, unsqueeze(g[0], -1), 0.0), in[0].sizes())};
  };
  return with_derivative("max_pool2d",
                         [](TensorsIn in) {
                           return Tensors{max(in[0], {-2, -1})};
                         },
                         backward, {windows})[0];
}

Tensor avg_pool2d(const Operand& x, Window kernel) { return avg_pool2d(x, kernel, kernel); }

// The sum over the window; without the padding, over how many elements are none of it.
Tensor avg_pool2d(const Operand& x, Window kernel, Window stride, Window padding,
                  bool count_include_pad) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  const auto summed = [&](const Tensor& image) {
    return sum(pooled_windows("avg_pool2d", image, kernel, stride, padding, 0, x.where),
               {-2, -1});
  };
  const Tensor total = summed(v);
  if (!count_include_pad) return cast_to(total / summed(ones_like(v)), tensor.dtype(), x.where);
  const double all = static_cast<double>(kernel.height * kernel.width);
  return cast_to(total / all, tensor.dtype(), x.where);
}

}  // namespace tiny_compile
