// Which graph has these nodes in a call?
//
//   %1 = exp %0 ; %2 = neg %1 ; return %2         outline(graph, 1, 2)
//     =>  %1 = call %0 { %1 = exp %0 ; return %1 } ; %2 = item %1 ; %3 = neg %2 ; return %3
#include "tests/fuzz/outline.h"

#include <algorithm>
#include <set>

namespace tiny_compile {
namespace {

struct Part {
  std::set<int> nodes;
  std::vector<int> operands, results;  // nodes outside that it reads, inside that others read
};

void add_once(std::vector<int>& ids, int id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

Part part_of(const Graph& graph, int first, int last) {
  Part part;
  for (int id = first; id < last; id++) {
    if (graph[id].op != Op::input) part.nodes.insert(id);
  }
  for (int id = 0; id < graph.size(); id++) {
    const bool inside = part.nodes.count(id) > 0;
    for (const int input : graph[id].inputs) {
      if (inside && !part.nodes.count(input)) add_once(part.operands, input);
      if (!inside && part.nodes.count(input)) add_once(part.results, input);
    }
  }
  for (const int output : graph.outputs) {
    if (part.nodes.count(output)) add_once(part.results, output);
  }
  return part;
}

bool crosses_tuple(const Graph& graph, const Part& part) {
  auto is_tuple = [&](int id) { return graph[id].type.is_tuple(); };
  return std::any_of(part.operands.begin(), part.operands.end(), is_tuple) ||
         std::any_of(part.results.begin(), part.results.end(), is_tuple);
}

void append_renumbered(Graph& out, Node node, int id, std::vector<int>& ids) {
  for (int& input : node.inputs) input = ids[input];
  ids[id] = out.append(std::move(node));
}

Graph body_of(const Graph& graph, const Part& part) {
  Graph body;
  body.name = "part";
  std::vector<int> ids(graph.nodes.size(), -1);
  for (const int operand : part.operands) {
    Node input;
    input.type = graph[operand].type;
    input.name = str("p", body.size());
    ids[operand] = body.append(std::move(input));
  }
  for (const int id : part.nodes) append_renumbered(body, graph[id], id, ids);
  for (const int result : part.results) body.outputs.push_back(ids[result]);
  return body;
}

void append_call(Graph& out, const Graph& graph, const Part& part, Op op,
                 std::vector<int>& ids) {
  Node call;
  call.op = op;
  for (const int operand : part.operands) call.inputs.push_back(ids[operand]);
  for (const int result : part.results) call.type.items.push_back(graph[result].type);
  call.graphs.push_back(body_of(graph, part));
  const int made = out.append(std::move(call));
  for (size_t k = 0; k < part.results.size(); k++) {
    Node item;
    item.op = Op::item;
    item.type = graph[part.results[k]].type;
    item.inputs = {made};
    item.set(Key::index, {static_cast<int64_t>(k)});
    ids[part.results[k]] = out.append(std::move(item));
  }
}

}  // namespace

Graph outline(const Graph& graph, int first, int last, Op op) {
  const Part part = part_of(graph, first, last);
  if (part.results.empty() || crosses_tuple(graph, part)) return graph;
  Graph out;
  out.name = graph.name;
  std::vector<int> ids(graph.nodes.size(), -1);
  for (const int input : graph.inputs()) ids[input] = out.append(graph[input]);
  for (int id = 0; id < graph.size(); id++) {
    if (id == *part.nodes.begin()) append_call(out, graph, part, op, ids);
    if (ids[id] < 0 && !part.nodes.count(id)) append_renumbered(out, graph[id], id, ids);
  }
  for (const int output : graph.outputs) out.outputs.push_back(ids[output]);
  return out;
}

}  // namespace tiny_compile
