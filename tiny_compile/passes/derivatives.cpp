// What is the derivative of a pointwise op? One line an op, beside the op table: g is the
// cotangent of the result y of a and b.
//
//   y = a * b   =>   g * b, g * a
//
// Where both operands of an op are computed, one is a statement of its own: compilers evaluate
// operands in different orders, and the graph must not depend on it.
#include "tiny_compile/passes/derivatives.h"

#include <numbers>

#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/nn.h"

namespace tiny_compile {
namespace {

using Cotangents = std::vector<Tensor>;

// a wins where it is greater, b where it is not; where both are the same each has half.
Cotangents halves(const Tensor& a, const Tensor& b, const Tensor& g) {
  const Tensor tie = a == b, half = g * 0.5;
  const Tensor first = where(a < b, 0.0, g);
  const Tensor second = where(b < a, 0.0, g);
  return {where(tie, half, first), where(tie, half, second)};
}

Cotangents pull_back_pow(const Tensor& a, const Tensor& b, const Tensor& y, const Tensor& g) {
  const Tensor slope = b * pow(a, b - 1.0);
  const Tensor of_base = where(b == 0.0, 0.0, g * slope);
  const Tensor at_zero = b >= 0.0;
  const Tensor flat = (a == 0.0) & at_zero;
  return {of_base, where(flat, 0.0, g * (y * log(a)))};
}

Cotangents pull_back_atan2(const Tensor& a, const Tensor& b, const Tensor& g) {
  const Tensor origin = (a == 0.0) & (b == 0.0);  // has no angle: 0, as in PyTorch
  const Tensor share = where(origin, 0.0, g / (a * a + b * b));
  return {share * b, -(share * a)};
}

Cotangents pull_back_silu(const Tensor& a, const Tensor& g) {
  const Tensor s = sigmoid(a);
  return {g * (s * (a * (1.0 - s) + 1.0))};
}

constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;
constexpr double kRootPi = 1.7724538509055160273;

Cotangents rule(Op op, const Tensor& a, const Tensor& b, const Tensor& y, const Tensor& g) {
  switch (op) {
    case Op::add: return {g, g};
    case Op::sub: return {g, -g};
    case Op::mul: return {g * b, g * a};
    case Op::div: return {g / b, -(g * (y / b))};
    case Op::remainder: return {g, -(g * floor_divide(a, b))};
    case Op::pow: return pull_back_pow(a, b, y, g);
    case Op::minimum: return halves(b, a, g);
    case Op::maximum: return halves(a, b, g);
    case Op::logaddexp: return {g * sigmoid(a - b), g * sigmoid(b - a)};
    case Op::neg: return {-g};
    case Op::abs: return {g * sign(a)};
    case Op::exp: return {g * y};
    case Op::expm1: return {g * (y + 1.0)};
    case Op::log: return {g / a};
    case Op::log1p: return {g / (a + 1.0)};
    case Op::exp2: return {g * (y * kLn2)};
    case Op::log2: return {g / (a * kLn2)};
    case Op::log10: return {g / (a * kLn10)};
    case Op::sin: return {g * cos(a)};
    case Op::cos: return {-(g * sin(a))};
    case Op::tan: return {g * (y * y + 1.0)};
    case Op::asin: return {g * rsqrt(1.0 - a * a)};
    case Op::acos: return {-(g * rsqrt(1.0 - a * a))};
    case Op::atan: return {g / (a * a + 1.0)};
    case Op::atan2: return pull_back_atan2(a, b, g);
    case Op::tanh: return {g * (1.0 - y * y)};
    case Op::sigmoid: return {g * ((1.0 - y) * y)};
    case Op::erf: return {g * (exp(-(a * a)) * (2.0 / kRootPi))};
    case Op::erfinv: return {g * (exp(y * y) * (kRootPi / 2.0))};
    case Op::lgamma: return {g * digamma(a)};
    case Op::digamma: return {g * polygamma(1, a)};
    case Op::zeta: return {Tensor(), -(g * (a * zeta(a + 1.0, b)))};
    case Op::gelu: return {gelu_backward(g, a)};
    case Op::silu: return pull_back_silu(a, g);
    case Op::softplus: return {g * sigmoid(a)};
    case Op::sqrt: return {g / (y * 2.0)};
    case Op::rsqrt: return {g * (y * y * y * -0.5)};
    case Op::reciprocal: return {-(g * (y * y))};
    default: return {};  // constant between jumps
  }
}

}  // namespace

Cotangents pull_back_pointwise(const PullBack& at) {
  const Op op = at.node.op;
  if (op == Op::cast) return {at.g};
  if (op == Op::bitcast) return {};
  if (op == Op::where) return {Tensor(), where(at.x[0], at.g, 0.0), where(at.x[0], 0.0, at.g)};
  const DType inside = is_half(at.y.dtype()) ? DType::f32 : at.y.dtype();
  const auto up = [&](const Tensor& t) { return t.to(inside); };  // halves are rounded once
  const Tensor a = up(at.x[0]), b = at.x.size() > 1 ? up(at.x[1]) : Tensor();
  const Tensor y = up(at.y);
  if (op == Op::fma) return {up(at.g) * b, up(at.g) * a, at.g};
  return rule(op, a, b, y, up(at.g));
}

Cotangents pull_back(const PullBack& at, const std::vector<bool>& wanted) {
  Cotangents result;
  switch (info(at.node.op).op_class) {
    case OpClass::Pointwise: result = pull_back_pointwise(at); break;
    case OpClass::View: result = pull_back_view(at); break;
    case OpClass::Reduction: result = pull_back_reduction(at); break;
    case OpClass::Scan: result = pull_back_scan(at); break;
    case OpClass::Matmul:
    case OpClass::Indexed:
    case OpClass::Scatter: result = pull_back_indexed(at); break;
    default: break;
  }
  result.resize(at.x.size());
  if (at.node.op == Op::zeta && wanted[0])
    fail_at(at.node.where, "zeta has no derivative with respect to its first operand");
  for (size_t k = 0; k < result.size(); k++) {
    if (!wanted[k]) result[k] = Tensor();
    if (result[k].defined()) result[k] = result[k].to(at.x[k].dtype());
  }
  return result;
}

}  // namespace tiny_compile
