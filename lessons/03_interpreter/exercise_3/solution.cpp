#include "exercise.h"

namespace exercise {
namespace {

// dead[id]: the nodes whose values nobody reads after node `id`.
std::vector<std::vector<int>> deaths(const Graph& graph) {
  std::vector<int> last(graph.nodes.size());
  for (int id = 0; id < graph.size(); id++) {
    last[static_cast<size_t>(id)] = id;
    for (int input : graph[id].inputs) last[static_cast<size_t>(input)] = id;
  }
  for (int output : graph.outputs) last[static_cast<size_t>(output)] = -1;
  std::vector<std::vector<int>> dead(graph.nodes.size());
  for (int id = 0; id < graph.size(); id++) {
    const int at = last[static_cast<size_t>(id)];
    if (at >= 0) dead[static_cast<size_t>(at)].push_back(id);
  }
  return dead;
}

}  // namespace

std::vector<Tensor> interpret_lean(const Graph& graph, std::span<const Tensor> inputs,
                                   const Run& run) {
  const std::vector<std::vector<int>> dead = deaths(graph);
  std::vector<Tensor> values;
  size_t next = 0;
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> operands;
    for (int input : node.inputs) operands.push_back(values[static_cast<size_t>(input)]);
    values.push_back(node.op == Op::input ? inputs[next++] : run(node, operands));
    for (int id : dead[values.size() - 1]) values[static_cast<size_t>(id)] = Tensor();
  }
  std::vector<Tensor> outputs;
  for (int output : graph.outputs) outputs.push_back(values[static_cast<size_t>(output)]);
  return outputs;
}

}  // namespace exercise
