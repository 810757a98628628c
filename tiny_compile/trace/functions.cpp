// What PyTorch calls an op, in primitives. Every function takes the user's line from its first
// operand; composites open a Scope so that all their nodes do.
#include "tiny_compile/trace/functions.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/trace/custom_vjp.h"

namespace tiny_compile {
namespace {

using Tensors = std::vector<Tensor>;
using TensorsIn = std::span<const Tensor>;

Tensor as_float(const Operand& x) {
  const Tensor tensor = x.captured();
  return is_float(tensor.dtype()) ? tensor : cast_to(tensor, DType::f32, x.where);
}

// f32 for halves, so that a composite rounds once, at its end.
Tensor upcast(const Operand& x) {
  const Tensor tensor = as_float(x);
  return is_half(tensor.dtype()) ? cast_to(tensor, DType::f32, x.where) : tensor;
}

Tensor integers_stay(Op op, const Operand& x) {
  const Tensor tensor = x.captured();
  if (!is_float(tensor.dtype())) return tensor;
  return pointwise(op, {&x});
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
Tensor softplus(const Operand& x) { return pointwise(Op::softplus, {&x}); }
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
Tensor fma(const Operand& a, const Operand& b, const Operand& c) {
  return pointwise(Op::fma, {&a, &b, &c});
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

namespace {

constexpr double kSlope = 1.5957691216057308,
                 kBend = 0.07135481627260025;  // 2c, and 0.044715 of it

// w = 2c * (v + 0.044715 v^3), c = sqrt(2 / pi): (1 + tanh(w / 2)) / 2 is sigmoid(w), and cancels nowhere.
Tensor bend(const Tensor& v) { return v * (v * v * kBend + kSlope); }

}  // namespace

Tensor gelu(const Operand& x, const std::string& approximate) {
  if (approximate == "none") return pointwise(Op::gelu, {&x});
  if (approximate != "tanh")
    fail_at(current_place(x.where),
            str("gelu: approximate is 'none' or 'tanh', not '", approximate, "'"));
  const Scope scope(x.where);
  const Tensor v = upcast(x);
  return cast_to(v * sigmoid(bend(v)), float_dtype(x), x.where);
}

// grad * gelu'(x), as PyTorch's aten.gelu_backward. The product rule on x * s:
//
//   gelu'(x) = s * (1 + x * (1 - s) * w')    s = sigmoid(w), w as above
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
  const Tensor s = sigmoid(bend(v)), slope = squared * (3 * kBend) + kSlope;  // w'
  return cast_to(g * (s * (v * (1.0 - s) * slope + 1.0)), result, grad.where);
}

// A NaN stays one: it is not below 0.
Tensor relu(const Operand& x) {
  const Scope scope(x.where);
  return with_derivative(
      "relu", [](TensorsIn in) { return Tensors{maximum(in[0], 0)}; },
      [](TensorsIn in, TensorsIn, TensorsIn g) {
        return Tensors{where(in[0] <= 0.0, 0.0, g[0])};
      },
      {x.captured()})[0];
}

Tensor leaky_relu(const Operand& x, double negative_slope) {
  const Scope scope(x.where);
  return where(x > 0, x, x * negative_slope);
}

Tensor clamp(const Operand& x, std::optional<double> low, std::optional<double> high) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  const bool whole = !is_float(tensor.dtype()) && (!low || *low == std::floor(*low)) &&
                     (!high || *high == std::floor(*high));
  auto bound = [&](double value) {
    return whole ? Operand(static_cast<int64_t>(value)) : Operand(value);
  };
  const auto clamped = [&](TensorsIn in) {
    const Tensor raised = low ? maximum(in[0], bound(*low)) : in[0];
    return Tensors{high ? minimum(raised, bound(*high)) : raised};
  };
  const auto backward = [&](TensorsIn in, TensorsIn, TensorsIn g) {
    const Tensor above = low ? where(in[0] >= *low, g[0], 0.0) : g[0];
    return Tensors{high ? where(in[0] <= *high, above, 0.0) : above};
  };
  return with_derivative("clamp", clamped, backward, {tensor})[0];
}

Tensor masked_fill(const Operand& x, const Operand& mask, double value) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  return is_float(tensor.dtype()) ? where(mask, value, tensor)
                                  : where(mask, static_cast<int64_t>(value), tensor);
}

}  // namespace tiny_compile
