#include "exercise.h"

namespace exercise {

Graph apply_three_rules(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    // out[node.inputs[0]] is the first operand, as it is in the new graph.
    if (node.op == Op::abs && out[node.inputs[0]].op == Op::neg)
      node.inputs = out[node.inputs[0]].inputs;
    // TODO: is that always right? And the other two rules.
    return out.append(std::move(node));
  });
}

}  // namespace exercise
