// Sums and their kin as PyTorch calls them: one axis, several, or all of them.
//
//   var(x: f32[4,6], 1)   =>   f32[4]: squared deviations from each row's mean, over 5
#include <algorithm>
#include <cmath>

#include "tiny_compile/trace/custom_vjp.h"
#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/variance.h"

namespace tiny_compile {
namespace {

Sizes all_axes(const Tensor& x, const Sizes& axes, const Location& where) {
  Sizes result;
  if (x.rank() == 0 && axes.size() == 1 && (axes[0] == 0 || axes[0] == -1))
    return {};  // PyTorch lets a number have an axis here
  for (int64_t axis : axes) result.push_back(normal_axis(axis, x.rank(), where));
  if (!axes.empty()) {
    std::sort(result.begin(), result.end());
    if (std::adjacent_find(result.begin(), result.end()) != result.end())
      fail_at(current_place(where), str("axes [", join(axes, ","), "] name one axis twice"));
    return result;
  }
  for (int64_t axis = 0; axis < x.rank(); axis++) result.push_back(axis);
  return result;
}

Tensor reduce_op(Op op, const Operand& x, const Tensor& tensor, const Sizes& axes,
                 bool keepdim) {
  Node node;
  node.op = op;
  const Sizes listed = all_axes(tensor, axes, x.where);
  node.set(Key::axes, {listed.begin(), listed.end()});
  if (keepdim) node.set(Key::keepdim, {1});
  node.type.dtype = tensor.dtype();
  return apply(std::move(node), {tensor}, x.where);
}

// The max of bools is any of them, the min all.
Tensor extreme(Op op, Op of_bools, const Operand& x, const Sizes& axes, bool keepdim) {
  const Tensor tensor = x.captured();
  const bool bools = tensor.dtype() == DType::boolean && !tensor.numel().is_number(0);
  return reduce_op(bools ? of_bools : op, x, tensor, axes, keepdim);
}

Tensor arg_op(Op op, const Operand& x, std::optional<int64_t> axis, bool keepdim) {
  return reduce_op(op, x, x.captured(), axis ? Sizes{*axis} : Sizes{}, keepdim);
}

Size counted(const Tensor& x, const Sizes& axes, const Location& where) {
  Size count = 1;
  for (int64_t axis : all_axes(x, axes, where)) count = count * x.size(axis);
  return count;
}

SizeList without(const SizeList& shape, const Sizes& axes) {
  SizeList rest;
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); axis++)
    if (!std::binary_search(axes.begin(), axes.end(), axis)) rest.push_back(shape[axis]);
  return rest;
}

// PyTorch's mean and var do not choose a float for you.
Tensor float_only(const char* name, const Operand& x) {
  const Tensor tensor = x.captured();
  if (!is_float(tensor.dtype()))
    fail_at(current_place(x.where), str(name, ": wants floats, not ", tensor.dtype(),
                                        "; cast first, as in x.to(tc::float32)"));
  return is_half(tensor.dtype()) ? cast_to(tensor, DType::f32, x.where) : tensor;
}

DType float_dtype(const Operand& x) {
  const DType dtype = result_type({&x});
  return is_float(dtype) ? dtype : DType::f32;
}

Size freedom_of(const Tensor& x, const Sizes& reduced, int64_t correction) {
  return max(counted(x, reduced, {}) - correction, Size(0));
}

// A result over `reduced`, which are axes of 1 of it, as the caller of a reduction of `x` wants it.
Tensor without_kept(const Tensor& kept, const Sizes& reduced, bool keepdim, const Operand& x) {
  const Tensor result = keepdim ? kept : reshape(kept, without(kept.sizes(), reduced));
  return cast_to(result, float_dtype(x), x.where);
}

// x^(1/p) for x >= 0. At 0 its derivative is 0, as PyTorch has it for norms and deviations.
Tensor root(const Tensor& x, double p) {
  using In = std::span<const Tensor>;
  return with_derivative(
      "root", [p](In in) { return std::vector{p == 2 ? sqrt(in[0]) : pow(in[0], 1 / p)}; },
      [p](In in, In y, In g) {
        const Tensor slope = p == 2 ? 0.5 / y[0] : pow(in[0], 1 / p - 1) / p;
        return std::vector{where(y[0] == 0.0, 0.0, g[0] * slope)};
      },
      {x})[0];
}

}  // namespace

Tensor sum(const Operand& x, const Axes& axes, bool keepdim) {
  return reduce_op(Op::sum, x, x.captured(), axes, keepdim);
}
Tensor prod(const Operand& x, const Axes& axes, bool keepdim) {
  return reduce_op(Op::prod, x, x.captured(), axes, keepdim);
}
Tensor max(const Operand& x, const Axes& axes, bool keepdim) {
  return extreme(Op::max, Op::any, x, axes, keepdim);
}
Tensor min(const Operand& x, const Axes& axes, bool keepdim) {
  return extreme(Op::min, Op::all, x, axes, keepdim);
}
Tensor argmax(const Operand& x, std::optional<int64_t> axis, bool keepdim) {
  return arg_op(Op::argmax, x, axis, keepdim);
}
Tensor argmin(const Operand& x, std::optional<int64_t> axis, bool keepdim) {
  return arg_op(Op::argmin, x, axis, keepdim);
}

Tensor any(const Operand& x, const Axes& axes, bool keepdim) {
  const Scope scope(x.where);
  return reduce_op(Op::any, x, as_bool(x), axes, keepdim);
}

Tensor all(const Operand& x, const Axes& axes, bool keepdim) {
  const Scope scope(x.where);
  return reduce_op(Op::all, x, as_bool(x), axes, keepdim);
}

Tensor sum_exp(const Operand& x, const Axes& axes, bool keepdim) {
  const Scope scope(x.where);
  return reduce_op(Op::sum_exp, x, cast_to(x.captured(), float_dtype(x), x.where), axes,
                   keepdim);
}

// sum / n
Tensor mean(const Operand& x, const Axes& axes, bool keepdim) {
  const Scope scope(x.where);
  const Tensor v = float_only("mean", x);
  const Size count = counted(v, axes, x.where);
  return cast_to(reduce_op(Op::sum, x, v, axes, keepdim) / count, float_dtype(x), x.where);
}

// sum((x - mean)^2) / (n - correction)
Tensor var(const Operand& x, const Axes& axes, int64_t correction, bool keepdim) {
  const Scope scope(x.where);
  const Tensor v = float_only("var", x);
  const Sizes reduced = all_axes(v, axes, x.where);
  const Tensor m2 = squared_deviations(v, reduced);
  return without_kept(m2 / freedom_of(v, reduced, correction), reduced, keepdim, x);
}

std::pair<Tensor, Tensor> var_mean(const Operand& x, const Axes& axes, int64_t correction,
                                   bool keepdim) {
  const Scope scope(x.where);
  const Tensor v = float_only("var_mean", x);
  const Sizes reduced = all_axes(v, axes, x.where);
  const MeanAndM2 moments = mean_and_m2(v, reduced);
  const Tensor variance = moments.m2 / freedom_of(v, reduced, correction);
  const Tensor first = without_kept(variance, reduced, keepdim, x);
  return {first, without_kept(moments.mean, reduced, keepdim, x)};
}

Tensor std(const Operand& x, const Axes& axes, int64_t correction, bool keepdim) {
  const Scope scope(x.where);
  const Tensor v = float_only("std", x);
  return cast_to(root(var(v, axes, correction, keepdim), 2), float_dtype(x), x.where);
}

Tensor norm(const Operand& x, double p, const Axes& axes, bool keepdim) {
  const Scope scope(x.where);
  const Tensor size = abs(float_only("norm", x));
  const auto result = [&]() -> Tensor {
    if (p == HUGE_VAL) return max(size, axes, keepdim);
    if (p == -HUGE_VAL) return min(size, axes, keepdim);
    if (p == 0) return sum(size != 0, axes, keepdim);
    if (p == 1) return sum(size, axes, keepdim);
    if (p == 2) return root(sum(size * size, axes, keepdim), 2);
    return root(sum(pow(size, p), axes, keepdim), p);
  };
  return cast_to(result(), float_dtype(x), x.where);
}

}  // namespace tiny_compile
