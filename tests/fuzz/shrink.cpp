// Which part of this graph is at fault? Changes that make it smaller are tried one by one; the
// first that still fails is kept, until none does.
//
//   %3 = mul %0, %1 ; %4 = exp %3 ; %5 = sum %4 ; return %5, %3   =>   %1 = exp %0 ; return %1
#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <set>

#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

int64_t weight(const Graph& graph) {
  int64_t total = static_cast<int64_t>(graph.outputs.size()) * 1000;
  for (const Node& node : graph.nodes) {
    for (const Graph& inner : node.graphs) total += weight(inner);
    total += node.op == Op::input ? 999 : 1000 + 10 * static_cast<int64_t>(node.inputs.size());
    if (node.op == Op::input && node.find(Key::strides)) total++;
    for (const Expr& size : node.type.shape) total += std::min<int64_t>(size.constant(), 9);
  }
  return total;
}

bool is_valid(const Graph& graph) { return !find_problem(graph); }

Graph only_output(Graph graph, int id) {
  graph.outputs = {id};
  return dce(graph);
}

Graph without_output(Graph graph, size_t k) {
  graph.outputs.erase(graph.outputs.begin() + static_cast<std::ptrdiff_t>(k));
  return dce(graph);
}

Graph as_input(Graph graph, int id) {
  Node input;
  input.type = graph[id].type;
  input.name = str("cut", id);
  graph.nodes[id] = input;
  return dce(graph);
}

// Users of the node read its operand instead.
Graph without_node(Graph graph, int id, int operand) {
  for (Node& node : graph.nodes)
    std::replace(node.inputs.begin(), node.inputs.end(), id, operand);
  std::replace(graph.outputs.begin(), graph.outputs.end(), id, operand);
  return dce(graph);
}

Graph row_major(Graph graph, int id) {
  std::erase_if(graph.nodes[id].attrs, [](const Attr& a) { return a.key == Key::strides; });
  return graph;
}

// Every size `from` in the graph becomes `to`; the rest follows from the shape rules.
Graph resized(Graph graph, int64_t from, int64_t to) {
  for (Node& node : graph.nodes) {
    if (node.op == Op::input)
      std::erase_if(node.attrs, [](const Attr& a) { return a.key == Key::strides; });
    for (Expr& size : node.type.shape) {
      if (size.is_constant(from)) size = to;
    }
    std::vector<Type> types;
    for (int input : node.inputs) types.push_back(graph[input].type);
    if (node.op == Op::input) continue;
    try {
      node.type = infer(node, types);
    } catch (const Error&) {
      return {};  // not valid: `fails` never sees it
    }
  }
  return graph;
}

std::vector<Graph> smaller_graphs(const Graph& graph) {
  std::vector<Graph> all = {inline_calls(graph)};
  for (int id = graph.size() - 1; id >= 0; id--) all.push_back(only_output(graph, id));
  for (size_t k = 0; k < graph.outputs.size() && graph.outputs.size() > 1; k++)
    all.push_back(without_output(graph, k));
  std::set<int64_t> sizes;
  for (int id = graph.size() - 1; id >= 0; id--) {
    for (const Expr& size : graph[id].type.shape) sizes.insert(size.constant());
    if (graph[id].op == Op::input && graph[id].find(Key::strides))
      all.push_back(row_major(graph, id));
    if (graph[id].op == Op::input) continue;
    for (int operand : graph[id].inputs) {
      if (graph[operand].type == graph[id].type)
        all.push_back(without_node(graph, id, operand));
    }
    if (graph[id].op != Op::philox) all.push_back(as_input(graph, id));
  }
  for (int64_t size : sizes) {
    for (int64_t to : {int64_t{1}, int64_t{2}, size / 2, size - 1}) {
      if (to < size && to > 0) all.push_back(resized(graph, size, to));
    }
  }
  return all;
}

}  // namespace

Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& fails) {
  Graph best = graph;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Graph& candidate : smaller_graphs(best)) {
      if (candidate.nodes.empty() || weight(candidate) >= weight(best) ||
          !is_valid(candidate) || !fails(candidate))
        continue;
      best = candidate;
      smaller = true;
      break;
    }
  }
  return best;
}

}  // namespace tiny_compile
