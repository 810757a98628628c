// fails: a number becomes a constant
#include "exercise.h"

namespace exercise {
namespace {

// The node that stands for a number in this recording.
int node_of(Recording& recording, const Number& number) {
  if (number.recording == &recording) return number.node;
  if (number.recording) fail("these numbers belong to two recordings");
  Node node;
  node.op = Op::constant;
  node.type = {DType::f32, {}};
  node.value = Literal::of(DType::f32, static_cast<double>(number.value));
  return recording.graph.append(std::move(node));
}

Recording* recording_of(const Numbers& operands) {
  for (const Number& operand : operands) {
    if (operand.recording) return operand.recording;
  }
  return nullptr;
}

}  // namespace

Number apply(Op op, const Numbers& operands) {
  Recording* recording = recording_of(operands);
  if (!recording) {
    std::vector<float> values;
    for (const Number& operand : operands) values.push_back(operand.value);
    return compute(op, values);
  }
  Node node;
  node.op = op;
  node.type = {DType::f32, {}};
  const int id = recording->graph.append(std::move(node));
  for (const Number& operand : operands) {
    const int input = node_of(*recording, operand);
    recording->graph.nodes[static_cast<size_t>(id)].inputs.push_back(input);
  }
  return {recording, id};
}

Graph record(const std::function<Number(Numbers)>& f, int inputs) {
  Recording recording;
  recording.graph.name = "recorded";
  Numbers parameters;
  for (int k = 0; k < inputs; k++) {
    Node node;
    node.name = str("x", k);
    node.type = {DType::f32, {}};
    parameters.push_back({&recording, recording.graph.append(node)});
  }
  recording.graph.outputs = {node_of(recording, f(parameters))};
  return recording.graph;
}

}  // namespace exercise
