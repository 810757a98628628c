#include "exercise.h"

#include <optional>

namespace exercise {
namespace {

// Where not (a op b) is a (result) b for operands of this dtype. Of a NaN every order is false.
std::optional<Op> negated(Op op, DType dtype) {
  if (op == Op::eq) return Op::ne;
  if (op == Op::ne) return Op::eq;
  if (is_float(dtype)) return std::nullopt;
  switch (op) {
    case Op::lt: return Op::ge;
    case Op::le: return Op::gt;
    case Op::gt: return Op::le;
    case Op::ge: return Op::lt;
    default: return std::nullopt;
  }
}

}  // namespace

Graph apply_three_rules(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    if (node.inputs.empty()) return out.append(std::move(node));
    const Node below = out[node.inputs[0]];
    const bool is_unsigned = category(node.type.dtype) == Category::Unsigned;
    if (node.op == Op::abs && below.op == Op::neg && !is_unsigned) node.inputs = below.inputs;
    if (node.op == Op::where && below.op == Op::bitwise_not)
      node.inputs = {below.inputs[0], node.inputs[2], node.inputs[1]};
    if (node.op == Op::bitwise_not && below.inputs.size() == 2) {
      const std::optional<Op> op = negated(below.op, out[below.inputs[0]].type.dtype);
      if (op) {
        node.op = *op;
        node.inputs = below.inputs;
      }
    }
    return out.append(std::move(node));
  });
}

}  // namespace exercise
