// What PyTorch calls an op, in primitives. Every function takes the user's line from its first
// operand; composites open a Scope so that all their nodes do.
#include "tiny_compile/trace/functions.h"

#include <algorithm>
#include <cmath>

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

Tensor as_float(const Operand& x) {
  const Tensor tensor = x.captured();
  return is_float(tensor.dtype()) ? tensor : cast_to(tensor, DType::f32, x.where);
}

// f32 for halves, so that a composite rounds once, at its end.
Tensor upcast(const Operand& x) {
  const Tensor tensor = as_float(x);
  return is_half(tensor.dtype()) ? cast_to(tensor, DType::f32, x.where) : tensor;
}

// The max of bools is any of them, the min all.
Tensor extreme(Op op, Op of_bools, const Operand& x, const Sizes& axes, bool keepdim) {
  const Tensor tensor = x.captured();
  const bool bools = tensor.dtype() == DType::boolean && !tensor.numel().is_number(0);
  return reduce_op(bools ? of_bools : op, x, tensor, axes, keepdim);
}

Tensor integers_stay(Op op, const Operand& x) {
  const Tensor tensor = x.captured();
  if (!is_float(tensor.dtype())) return tensor;
  return pointwise(op, {&x});
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

}  // namespace

int64_t normal_axis(int64_t axis, int64_t rank, const Location& where) {
  if (axis < -rank || axis >= rank)
    fail_at(current_place(where),
            str("axis ", axis, " is out of range for a tensor of ", rank, " axes"));
  return axis < 0 ? axis + rank : axis;
}

Tensor exp(const Operand& x) { return pointwise(Op::exp, {&x}); }
Tensor expm1(const Operand& x) { return pointwise(Op::expm1, {&x}); }
Tensor log(const Operand& x) { return pointwise(Op::log, {&x}); }
Tensor log1p(const Operand& x) { return pointwise(Op::log1p, {&x}); }
Tensor sin(const Operand& x) { return pointwise(Op::sin, {&x}); }
Tensor cos(const Operand& x) { return pointwise(Op::cos, {&x}); }
Tensor exp2(const Operand& x) { return pointwise(Op::exp2, {&x}); }
Tensor log2(const Operand& x) { return pointwise(Op::log2, {&x}); }
Tensor log10(const Operand& x) { return pointwise(Op::log10, {&x}); }
Tensor tan(const Operand& x) { return pointwise(Op::tan, {&x}); }
Tensor asin(const Operand& x) { return pointwise(Op::asin, {&x}); }
Tensor acos(const Operand& x) { return pointwise(Op::acos, {&x}); }
Tensor atan(const Operand& x) { return pointwise(Op::atan, {&x}); }
Tensor atan2(const Operand& y, const Operand& x) { return pointwise(Op::atan2, {&y, &x}); }
Tensor erfinv(const Operand& x) { return pointwise(Op::erfinv, {&x}); }
Tensor lgamma(const Operand& x) { return pointwise(Op::lgamma, {&x}); }
Tensor digamma(const Operand& x) { return pointwise(Op::digamma, {&x}); }
Tensor zeta(const Operand& s, const Operand& q) { return pointwise(Op::zeta, {&s, &q}); }
Tensor tanh(const Operand& x) { return pointwise(Op::tanh, {&x}); }
Tensor sigmoid(const Operand& x) { return pointwise(Op::sigmoid, {&x}); }
Tensor erf(const Operand& x) { return pointwise(Op::erf, {&x}); }
Tensor silu(const Operand& x) { return pointwise(Op::silu, {&x}); }
Tensor sqrt(const Operand& x) { return pointwise(Op::sqrt, {&x}); }
Tensor rsqrt(const Operand& x) { return pointwise(Op::rsqrt, {&x}); }
Tensor reciprocal(const Operand& x) { return pointwise(Op::reciprocal, {&x}); }
Tensor floor(const Operand& x) { return integers_stay(Op::floor, x); }
Tensor ceil(const Operand& x) { return integers_stay(Op::ceil, x); }
Tensor round(const Operand& x) { return integers_stay(Op::round, x); }
Tensor trunc(const Operand& x) { return integers_stay(Op::trunc, x); }
Tensor abs(const Operand& x) { return pointwise(Op::abs, {&x}); }
Tensor sign(const Operand& x) { return pointwise(Op::sign, {&x}); }
Tensor square(const Operand& x) { return pointwise(Op::mul, {&x, &x}); }
Tensor isnan(const Operand& x) { return pointwise(Op::ne, {&x, &x}); }
Tensor minimum(const Operand& a, const Operand& b) { return pointwise(Op::minimum, {&a, &b}); }
Tensor maximum(const Operand& a, const Operand& b) { return pointwise(Op::maximum, {&a, &b}); }
Tensor logaddexp(const Operand& a, const Operand& b) {
  return pointwise(Op::logaddexp, {&a, &b});
}
Tensor pow(const Operand& base, const Operand& exponent) {
  return pointwise(Op::pow, {&base, &exponent});
}
Tensor remainder(const Operand& a, const Operand& b) {
  return pointwise(Op::remainder, {&a, &b});
}
Tensor floor_divide(const Operand& a, const Operand& b) {
  return pointwise(Op::floor_divide, {&a, &b});
}
Tensor popcount(const Operand& x) { return pointwise(Op::popcount, {&x}); }

// (-1)^(n+1) n! zeta(n + 1, x), in f64, which zeta of f32 goes through anyway: n! may be beyond f32
// where the product is not.
Tensor polygamma(int64_t n, const Operand& x) {
  if (n < 0)
    fail_at(current_place(x.where), str("polygamma: there is no derivative of order ", n));
  if (n == 0) return digamma(x);
  const Scope scope(x.where);
  const DType dtype = float_dtype(x);
  const double factor = std::tgamma(static_cast<double>(n) + 1) * (n % 2 == 0 ? -1 : 1);
  const Tensor sum =
      zeta(static_cast<double>(n) + 1, cast_to(x.captured(), DType::f64, x.where));
  return cast_to(sum * factor, dtype, x.where);
}

Tensor bitcast(const Operand& x, DType dtype) {
  const Tensor tensor = x.captured();
  if (tensor.dtype() == dtype) return tensor;
  Node node;
  node.op = Op::bitcast;
  node.type.dtype = dtype;
  return apply(std::move(node), {tensor}, x.where);
}

Tensor where(const Operand& condition, const Operand& a, const Operand& b) {
  const Scope scope(condition.where);
  const Tensor mask = as_bool(condition);
  const Operand chosen(mask);
  return pointwise(Op::where, {&chosen, &a, &b});
}

Tensor isinf(const Operand& x) {
  const Scope scope(x.where);
  return abs(x) == HUGE_VAL;
}

Tensor isfinite(const Operand& x) {
  const Scope scope(x.where);
  return abs(x) < HUGE_VAL;
}

Tensor logical_and(const Operand& a, const Operand& b) {
  const Scope scope(a.where);
  return as_bool(a) & as_bool(b);
}

Tensor logical_or(const Operand& a, const Operand& b) {
  const Scope scope(a.where);
  return as_bool(a) | as_bool(b);
}

Tensor logical_not(const Operand& a) {
  const Scope scope(a.where);
  return ~as_bool(a);
}

Tensor gelu(const Operand& x, const std::string& approximate) {
  if (approximate == "none") return pointwise(Op::gelu, {&x});
  if (approximate != "tanh")
    fail_at(current_place(x.where),
            str("gelu: approximate is 'none' or 'tanh', not '", approximate, "'"));
  const Scope scope(x.where);
  const Tensor v = upcast(x);
  const Tensor inner = (v + v * v * v * 0.044715) * 0.7978845608028654;
  const Tensor bent = tanh(inner) + 1.0;
  return cast_to(v * 0.5 * bent, float_dtype(x), x.where);
}

// grad * gelu'(x), as PyTorch's aten.gelu_backward. The product rule on x/2 * (1 + t):
//
//   gelu'(x) = (1 + t)/2 + x/2 * (1 - t^2) * u'    t = tanh(u), u = c*(x + 0.044715*x^3)
//
// and "none": gelu'(x) = (1 + erf(x / sqrt 2))/2 + x * exp(-x^2 / 2) / sqrt(2 pi).
Tensor gelu_backward(const Operand& grad, const Operand& x, const std::string& approximate) {
  if (approximate != "none" && approximate != "tanh")
    fail_at(current_place(grad.where),
            str("gelu_backward: approximate is 'none' or 'tanh', not '", approximate, "'"));
  const Scope scope(grad.where);
  const DType promoted = result_type({&grad, &x});
  const DType result = is_float(promoted) ? promoted : DType::f32;
  const Tensor g = upcast(grad), v = upcast(x), squared = v * v;
  if (approximate == "none") {
    const Tensor below = (erf(v * 0.7071067811865476) + 1.0) * 0.5;
    const Tensor density = exp(squared * -0.5) * 0.3989422804014327;
    return cast_to(g * (below + v * density), result, grad.where);
  }
  const Tensor bent = tanh((v + squared * v * 0.044715) * 0.7978845608028654);
  const Tensor slope = (squared * 0.134145 + 1.0) * 0.7978845608028654;  // u'
  const Tensor left = (bent + 1.0) * 0.5, right = v * 0.5 * (1.0 - bent * bent) * slope;
  return cast_to(g * (left + right), result, grad.where);
}

// A NaN stays one: it is not below 0.
Tensor relu(const Operand& x) {
  const Scope scope(x.where);
  return maximum(x, 0);
}

// max(x, 0) + log1p(exp(-|x|))
Tensor softplus(const Operand& x) {
  const Scope scope(x.where);
  const Tensor v = upcast(x);
  const Tensor rest = log1p(exp(-abs(v)));
  return cast_to(maximum(v, 0.0) + rest, float_dtype(x), x.where);
}

Tensor leaky_relu(const Operand& x, double negative_slope) {
  const Scope scope(x.where);
  return where(x > 0, x, x * negative_slope);
}

Tensor clamp(const Operand& x, std::optional<double> low, std::optional<double> high) {
  const Scope scope(x.where);
  Tensor result = x.captured();
  const bool whole = !is_float(result.dtype()) && (!low || *low == std::floor(*low)) &&
                     (!high || *high == std::floor(*high));
  auto bound = [&](double value) {
    return whole ? Operand(static_cast<int64_t>(value)) : Operand(value);
  };
  if (low) result = maximum(result, bound(*low));
  if (high) result = minimum(result, bound(*high));
  return result;
}

Tensor masked_fill(const Operand& x, const Operand& mask, double value) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  return is_float(tensor.dtype()) ? where(mask, value, tensor)
                                  : where(mask, static_cast<int64_t>(value), tensor);
}

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
  return reduce_op(Op::sum_exp, x, as_float(x), axes, keepdim);
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
  Tensor m2 = squared_deviations(v, reduced);
  if (!keepdim) m2 = reshape(m2, without(v.sizes(), reduced));
  const Size freedom = max(counted(v, axes, x.where) - correction, Size(0));
  return cast_to(m2 / freedom, float_dtype(x), x.where);
}

Tensor std(const Operand& x, const Axes& axes, int64_t correction, bool keepdim) {
  const Scope scope(x.where);
  const Tensor v = float_only("std", x);
  return cast_to(sqrt(var(v, axes, correction, keepdim)), float_dtype(x), x.where);
}

Tensor norm(const Operand& x, double p, const Axes& axes, bool keepdim) {
  const Scope scope(x.where);
  const Tensor size = abs(float_only("norm", x));
  const auto result = [&]() -> Tensor {
    if (p == HUGE_VAL) return max(size, axes, keepdim);
    if (p == -HUGE_VAL) return min(size, axes, keepdim);
    if (p == 0) return sum(size != 0, axes, keepdim);
    if (p == 1) return sum(size, axes, keepdim);
    if (p == 2) return sqrt(sum(size * size, axes, keepdim));
    return pow(sum(pow(size, p), axes, keepdim), 1 / p);
  };
  return cast_to(result(), float_dtype(x), x.where);
}

}  // namespace tiny_compile
