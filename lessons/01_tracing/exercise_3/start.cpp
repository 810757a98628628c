#include "exercise.h"

namespace exercise {

Number apply(Op op, const Numbers& operands) {
  // TODO: where an operand is traced, append a node to its recording, and return that.
  std::vector<float> values;
  for (const Number& operand : operands) values.push_back(operand.value);
  return compute(op, values);
}

Graph record(const std::function<Number(Numbers)>& f, int inputs) {
  Recording recording;
  recording.graph.name = "recorded";
  Numbers parameters;
  for (int k = 0; k < inputs; k++) {
    Node node;
    node.name = str("x", k);
    parameters.push_back({&recording, recording.graph.append(node)});
  }
  const Number result = f(parameters);
  recording.graph.outputs = {result.node};
  return recording.graph;
}

}  // namespace exercise
