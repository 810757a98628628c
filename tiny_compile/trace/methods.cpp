// x.sum(-1) is sum(x, {-1}): the Tensor's methods are the functions, at the caller's line.
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/sorts.h"

namespace tiny_compile {

Tensor Tensor::sum(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::sum({*this, here}, axes, keepdim);
}
Tensor Tensor::prod(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::prod({*this, here}, axes, keepdim);
}
Tensor Tensor::mean(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::mean({*this, here}, axes, keepdim);
}
Tensor Tensor::var(const Axes& axes, int64_t correction, bool keepdim, Here here) const {
  return tiny_compile::var({*this, here}, axes, correction, keepdim);
}
Tensor Tensor::std(const Axes& axes, int64_t correction, bool keepdim, Here here) const {
  return tiny_compile::std({*this, here}, axes, correction, keepdim);
}
Tensor Tensor::norm(double p, const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::norm({*this, here}, p, axes, keepdim);
}
Tensor Tensor::logsumexp(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::logsumexp({*this, here}, axes, keepdim);
}
Tensor Tensor::max(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::max({*this, here}, axes, keepdim);
}
Tensor Tensor::min(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::min({*this, here}, axes, keepdim);
}
Tensor Tensor::argmax(std::optional<int64_t> axis, bool keepdim, Here here) const {
  return tiny_compile::argmax({*this, here}, axis, keepdim);
}
Tensor Tensor::argmin(std::optional<int64_t> axis, bool keepdim, Here here) const {
  return tiny_compile::argmin({*this, here}, axis, keepdim);
}
Tensor Tensor::any(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::any({*this, here}, axes, keepdim);
}
Tensor Tensor::all(const Axes& axes, bool keepdim, Here here) const {
  return tiny_compile::all({*this, here}, axes, keepdim);
}
std::pair<Tensor, Tensor> Tensor::sort(int64_t axis, bool descending, Here here) const {
  return tiny_compile::sort({*this, here}, axis, descending);
}
Tensor Tensor::argsort(int64_t axis, bool descending, Here here) const {
  return tiny_compile::argsort({*this, here}, axis, descending);
}
std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t axis, bool largest, Here here) const {
  return tiny_compile::topk({*this, here}, k, axis, largest);
}
Tensor Tensor::softmax(int64_t axis, Here here) const {
  return tiny_compile::softmax({*this, here}, axis);
}
Tensor Tensor::log_softmax(int64_t axis, Here here) const {
  return tiny_compile::log_softmax({*this, here}, axis);
}
Tensor Tensor::matmul(const Tensor& other, Here here) const {
  return tiny_compile::matmul({*this, here}, {other, here});
}

// A conversion cannot take the caller's line: the line that computed the condition is named.
Tensor::operator bool() const {
  if (is_traced())
    fail_at(recorded_at(*this),
            "bool(): this condition is being traced and has no value to branch on; use where() "
            "instead");
  return item<double>() != 0;
}

Tensor Tensor::reshape(SizeList shape, Here here) const {
  return tiny_compile::reshape({*this, here}, std::move(shape));
}

// As reshape, but never a copy: PyTorch's view.
Tensor Tensor::view(SizeList shape, Here here) const {
  const Tensor result = reshape(std::move(shape), here);
  if (!result.is_traced() && numel() > 0 && result.info().storage != info().storage)
    fail_at(location_of(here),
            "view: these strides cannot be viewed in that shape; use reshape, which copies");
  return result;
}
Tensor Tensor::view(DType dtype, Here here) const {
  return tiny_compile::bitcast({*this, here}, dtype);
}
Tensor Tensor::flatten(int64_t first, int64_t last, Here here) const {
  return tiny_compile::flatten({*this, here}, first, last);
}
Tensor Tensor::permute(Sizes axes, Here here) const {
  return tiny_compile::permute({*this, here}, axes);
}
Tensor Tensor::transpose(int64_t axis0, int64_t axis1, Here here) const {
  return tiny_compile::transpose({*this, here}, axis0, axis1);
}
Tensor Tensor::t(Here here) const {
  if (rank() > 2)
    fail_at(location_of(here),
            tiny_compile::str("t(): a tensor of ", rank(), " axes; use permute"));
  return rank() < 2 ? *this : transpose(0, 1, here);
}
Tensor Tensor::expand(SizeList shape, Here here) const {
  return tiny_compile::expand({*this, here}, std::move(shape));
}
Tensor Tensor::slice(int64_t axis, const std::optional<Size>& start,
                     const std::optional<Size>& stop, int64_t step, Here here) const {
  return tiny_compile::slice({*this, here}, axis, start, stop, step);
}
Tensor Tensor::select(int64_t axis, int64_t index, Here here) const {
  return tiny_compile::select({*this, here}, axis, index);
}
Tensor Tensor::operator[](Index index) const {
  return tiny_compile::select({*this, index.here}, 0, index.value);
}
Tensor Tensor::narrow(int64_t axis, const Size& start, const Size& length, Here here) const {
  const Location where = location_of(here);
  const Size length_of_axis = size(normal_axis(axis, rank(), where), here);
  const Size first = start < 0 ? start + length_of_axis : start;
  if (first < 0 || length < 0 || first + length > length_of_axis)
    fail_at(where, tiny_compile::str("narrow: ", length, " from ", start,
                                     " leaves an axis of size ", length_of_axis));
  return tiny_compile::slice({*this, here}, axis, first, first + length);
}
Tensor Tensor::flip(const Axes& axes, Here here) const {
  return tiny_compile::flip({*this, here}, axes);
}
Tensor Tensor::unfold(int64_t axis, int64_t size, int64_t step, Here here) const {
  return tiny_compile::unfold({*this, here}, axis, size, step);
}
Tensor Tensor::squeeze(std::optional<int64_t> axis, Here here) const {
  return tiny_compile::squeeze({*this, here}, axis);
}
Tensor Tensor::unsqueeze(int64_t axis, Here here) const {
  return tiny_compile::unsqueeze({*this, here}, axis);
}
Tensor Tensor::contiguous(Here here) const { return tiny_compile::contiguous({*this, here}); }
Tensor Tensor::clone(Here here) const {
  return is_tracing() ? seen(*this, location_of(here)) : row_major_copy(*this);
}

Tensor Tensor::to(DType dtype, Here here) const {
  return cast_to(seen(*this, location_of(here)), dtype, location_of(here));
}
Tensor Tensor::to(Device device) const {
  if (is_tracing() && (is_traced() || this->device() != device))
    fail("to(", device.str(), "): inside a compiled function all tensors are on one device");
  return copy_to(*this, device);
}
Tensor Tensor::exp(Here here) const { return tiny_compile::exp({*this, here}); }
Tensor Tensor::log(Here here) const { return tiny_compile::log({*this, here}); }
Tensor Tensor::tanh(Here here) const { return tiny_compile::tanh({*this, here}); }
Tensor Tensor::sqrt(Here here) const { return tiny_compile::sqrt({*this, here}); }
Tensor Tensor::abs(Here here) const { return tiny_compile::abs({*this, here}); }
Tensor Tensor::relu(Here here) const { return tiny_compile::relu({*this, here}); }
Tensor Tensor::sigmoid(Here here) const { return tiny_compile::sigmoid({*this, here}); }
Tensor Tensor::pow(double exponent, Here here) const {
  return tiny_compile::pow({*this, here}, {exponent, here});
}

}  // namespace tiny_compile
