// When is replacing safe? When not one bit of any result can change, for any input.
//
//   %2 = permute %1 {axes=[1,0]} ; %3 = permute %2 {axes=[1,0]}   =>   %3 is %1
//   %2 = constant {value=8.0} ; %3 = div %1, %2                   =>   %3 = mul %1, 0.125
//
// x + 0.0 is not x (-0.0 + 0.0 is 0.0), but x + (-0.0) and x - 0.0 are.
#include <cmath>

#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

bool is_constant(const Graph& graph, int id, double value) {
  const std::optional<Literal> literal = constant_value(graph, id);
  return literal && literal->is(value);
}

// 1/value where dividing by value and multiplying by the result are the same for every operand.
std::optional<Literal> exact_reciprocal(const std::optional<Literal>& divisor) {
  if (!divisor) return std::nullopt;
  const double value = divisor->as_double();
  int exponent = 0;
  if (std::abs(std::frexp(value, &exponent)) != 0.5 || std::abs(exponent) > 100)
    return std::nullopt;
  const Literal result = Literal::of(divisor->dtype, 1 / value);
  const bool normal = divisor->dtype != DType::f16 || std::abs(exponent) < 14;
  if (!normal || result.as_double() * value != 1) return std::nullopt;
  return result;
}

// The node that a view of this kind leaves as it is, or -1.
int unchanged_view(const Graph& out, const Node& node) {
  const int source = node.inputs[0];
  switch (node.op) {
    case Op::reshape:
    case Op::expand: return out[source].type == node.type ? source : -1;
    case Op::permute: {
      const std::vector<int> axes = node.axes();
      for (size_t k = 0; k < axes.size(); k++) {
        if (axes[k] != static_cast<int>(k)) return -1;
      }
      return source;
    }
    case Op::slice: {
      const Expr& size = out[source].type.shape[node.integer(Key::axis, 0)];
      const bool whole =
          node.attr(Key::start).is_constant(0) && node.attr(Key::step).is_constant(1);
      return whole && node.attr(Key::stop) == size ? source : -1;
    }
    case Op::flip: return node.list(Key::axes).empty() ? source : -1;
    default: return -1;
  }
}

// Two views of one kind as one: reshape of reshape, expand of expand, permute of permute.
Node merged_views(const Graph& out, Node node) {
  const Node& below = out[node.inputs[0]];
  if (below.op != node.op) return node;
  if (node.op == Op::permute) {
    const std::vector<int> first = below.axes(), second = node.axes();
    std::vector<Expr> axes;
    for (int axis : second) axes.push_back(first[axis]);
    node.set(Key::axes, axes);
    node.inputs = below.inputs;
  } else if (node.op == Op::reshape || node.op == Op::expand) {
    node.inputs = below.inputs;
  }
  return node;
}

// Each float of a dtype is one of each wider dtype: f16 -> f32 -> f16 is x again, f16 -> bf16
// -> f16 is not, and integers may wrap.
bool is_there_and_back(const Graph& out, const Node& there, DType back) {
  const DType from = out[there.inputs[0]].type.dtype;
  return from == back && is_float(from) && is_float(there.type.dtype) &&
         size_of(from) < size_of(there.type.dtype);
}

// What an op leaves as it is, mostly its operand, or -1.
int unchanged_operand(const Graph& out, const Node& node) {
  const int a = node.inputs[0], b = node.inputs.size() > 1 ? node.inputs[1] : -1;
  const bool floating = is_float(node.type.dtype);
  switch (node.op) {
    case Op::add: {
      const double zero = floating ? -0.0 : 0.0;
      return is_constant(out, b, zero) ? a : is_constant(out, a, zero) ? b : -1;
    }
    case Op::sub: return is_constant(out, b, 0.0) ? a : -1;
    case Op::mul: return is_constant(out, b, 1) ? a : is_constant(out, a, 1) ? b : -1;
    case Op::div: return is_constant(out, b, 1) ? a : -1;
    case Op::neg:
    case Op::bitwise_not: return out[a].op == node.op ? out[a].inputs[0] : -1;
    case Op::abs: return out[a].op == Op::abs ? a : -1;
    case Op::minimum:
    case Op::maximum:
    case Op::bitwise_and:
    case Op::bitwise_or: return a == b ? a : -1;
    case Op::where: {
      const int c = node.inputs[2];
      const bool is_condition =
          node.type.dtype == DType::boolean && is_constant(out, b, 1) && is_constant(out, c, 0);
      return is_condition ? a : b == c ? b : -1;
    }
    case Op::cast:
      if (out[a].op == Op::cast && is_there_and_back(out, out[a], node.type.dtype))
        return out[a].inputs[0];
      [[fallthrough]];
    case Op::bitcast: return out[a].type.dtype == node.type.dtype ? a : -1;
    default: return -1;
  }
}

int divide_by_power_of_two(Graph& out, Node node) {
  const std::optional<Literal> reciprocal =
      exact_reciprocal(constant_value(out, node.inputs[1]));
  if (!reciprocal) return out.append(std::move(node));
  Node factor;
  factor.op = Op::constant;
  factor.type = node.type;
  factor.value = *reciprocal;
  factor.where = node.where;
  node.op = Op::mul;
  node.inputs[1] = out.append(std::move(factor));
  return out.append(std::move(node));
}

// The gather of a cast as the cast of a gather, which casts what is gathered and no more.
int gather_before_cast(Graph& out, Node node) {
  const Node below = out[node.inputs[0]];
  const bool is_less =
      product(node.type.shape).bounds().high <= product(below.type.shape).bounds().low;
  if (below.op != Op::cast || !is_less) return out.append(std::move(node));
  Node cast = below;
  cast.type = node.type;
  node.inputs[0] = below.inputs[0];
  node.type.dtype = out[below.inputs[0]].type.dtype;
  cast.inputs = {out.append(std::move(node))};
  return out.append(std::move(cast));
}

}  // namespace

Graph simplify(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    if (is_view(node.op)) {
      node = merged_views(out, std::move(node));
      const int same = unchanged_view(out, node);
      return same >= 0 ? same : out.append(std::move(node));
    }
    if (node.op == Op::gather) return gather_before_cast(out, std::move(node));
    if (!is_pointwise(node.op)) return out.append(std::move(node));
    const int same = unchanged_operand(out, node);
    if (same >= 0) return same;
    if (node.op == Op::div) return divide_by_power_of_two(out, std::move(node));
    return out.append(std::move(node));
  });
}

}  // namespace tiny_compile
