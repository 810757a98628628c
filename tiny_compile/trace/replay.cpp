// How does a graph become part of another one? Its ops are called again, in order, on the tensors
// of the trace that runs:
//
//   graph f(%0 x) { %1 = exp %0 ; return %1 }, on a + b   =>   %3 = add %1, %2 ; %4 = exp %3
#include "tiny_compile/trace/replay.h"

#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

std::vector<Tensor> replay_all(const Graph& graph, std::span<const Tensor> inputs) {
  CHECK(inputs.size() == graph.inputs().size());
  std::vector<Tensor> values;
  size_t next = 0;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::input) {
      values.push_back(inputs[next++]);
      continue;
    }
    std::vector<Tensor> operands;
    for (const int input : node.inputs) operands.push_back(values[input]);
    Node again = node;
    again.inputs.clear();
    values.push_back(apply(std::move(again), operands, node.where));
  }
  return values;
}

std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs) {
  const std::vector<Tensor> values = replay_all(graph, inputs);
  std::vector<Tensor> outputs;
  for (const int output : graph.outputs) outputs.push_back(values[output]);
  return outputs;
}

}  // namespace tiny_compile
