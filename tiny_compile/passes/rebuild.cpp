// The sweep that every pass is: old nodes in order, each replaced by an id in the new graph.
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {

Graph rebuild(const Graph& graph, const std::function<int(Graph& out, Node node)>& visit) {
  Graph out;
  out.name = graph.name;
  out.nodes.reserve(graph.nodes.size());
  std::vector<int> ids;
  for (const Node& old : graph.nodes) {
    Node node = old;
    for (int& input : node.inputs) input = ids[input];
    ids.push_back(visit(out, std::move(node)));
  }
  for (int output : graph.outputs) out.outputs.push_back(ids[output]);
  return out;
}

std::optional<Literal> constant_value(const Graph& graph, int id) {
  while (is_view(graph[id].op)) id = graph[id].inputs[0];
  if (graph[id].op != Op::constant) return std::nullopt;
  return graph[id].value;
}

}  // namespace tiny_compile
