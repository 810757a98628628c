// What is a call without its boundary? The nodes of its graph, where it stood.
//
//   %1: (f32[4]) = call %0 { graph f(%0 x: f32[4]) { %1: f32[4] = exp %0 ; return %1 } }
//   %2: f32[4] = item %1 {index=0}
//   %3: f32[4] = neg %2
//     =>  %1: f32[4] = exp %0 ; %2: f32[4] = neg %1
//
// Graph passes keep to one side of the boundary (a checkpoint relies on it); lower knows no
// calls, so it begins with this.
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

bool is_opened(const Node& node, const NodeChoice& which) {
  return !node.graphs.empty() && (!which || which(node));
}

// The nodes of a graph at the end of `out`, with `operands` for its inputs; the ids of its
// outputs there. A node without a place has that of the call.
std::vector<int> append_inlined(Graph& out, const Graph& graph,
                                const std::vector<int>& operands, const Location& call,
                                const NodeChoice& which) {
  std::vector<std::vector<int>> ids;  // of each node: itself, or a call's results
  size_t next = 0;
  for (const Node& old : graph.nodes) {
    if (old.op == Op::input) {
      ids.push_back({operands[next++]});
      continue;
    }
    if (old.op == Op::item && is_opened(graph[old.inputs[0]], which)) {
      ids.push_back({ids[old.inputs[0]][old.integer(Key::index, 0)]});
      continue;
    }
    Node node = old;
    for (int& input : node.inputs) input = ids[input][0];
    if (node.where.file.empty()) node.where = call;
    if (is_opened(node, which))
      ids.push_back(append_inlined(out, node.graphs[0], node.inputs, node.where, which));
    else
      ids.push_back({out.append(std::move(node))});
  }
  std::vector<int> outputs;
  for (const int output : graph.outputs) outputs.push_back(ids[output][0]);
  return outputs;
}

}  // namespace

Graph inline_calls(const Graph& graph, const NodeChoice& which) {
  Graph out;
  out.name = graph.name;
  std::vector<int> inputs;
  for (const int input : graph.inputs()) inputs.push_back(out.append(graph[input]));
  out.outputs = append_inlined(out, graph, inputs, {}, which);
  return out;
}

Graph with_graphs_inside(const GraphFunction& pass, const Graph& graph) {
  Graph result = graph;
  for (Node& node : result.nodes) {
    for (Graph& inner : node.graphs) inner = with_graphs_inside(pass, inner);
  }
  return pass(result);
}

}  // namespace tiny_compile
