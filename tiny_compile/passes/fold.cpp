// What can be computed now? Ops whose operands are constants, by the interpreter, so that the
// bits are the ones that the op would have given.
//   %1 = constant {value=2.0} ; %2 = exp %1   =>   %2 = constant {value=7.389056}
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

Node constant(const Node& like, const Literal& value) {
  Node node;
  node.op = Op::constant;
  node.type = like.type;
  node.value = value;
  node.where = like.where;
  return node;
}

// The value of a pointwise op on these values, or nothing where computing it raises an error.
std::optional<Literal> evaluate_once(const Node& node, const std::vector<Literal>& values) {
  Node scalar = node;
  scalar.type.shape.clear();
  std::vector<Tensor> operands;
  for (const Literal& value : values) operands.push_back(filled_tensor(value, {}));
  try {
    return evaluate(scalar, operands).element({});
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Graph fold(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    const bool view = is_view(node.op);
    if (!view && !is_pointwise(node.op)) return out.append(std::move(node));
    std::vector<Literal> values;
    for (int input : node.inputs) {
      const std::optional<Literal> value = constant_value(out, input);
      if (!value) return out.append(std::move(node));
      values.push_back(*value);
    }
    const std::optional<Literal> result = view ? values[0] : evaluate_once(node, values);
    return out.append(result ? constant(node, *result) : node);
  });
}

}  // namespace tiny_compile
