// The sweep that every pass is: old nodes in order, each replaced by an id in the new graph. And how a pass adds nodes
// there.
#include <algorithm>

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

int append_inferred(Graph& out, Node node) {
  std::vector<Type> operands;
  for (const int input : node.inputs) operands.push_back(out[input].type);
  node.type = infer(node, operands);
  return out.append(std::move(node));
}

int append_slice(Graph& out, int id, int axis, const Expr& start, const Expr& stop,
                 const Location& where) {
  Node slice;
  slice.op = Op::slice;
  slice.inputs = {id};
  slice.set(Key::axis, {axis}).set(Key::start, {start}).set(Key::stop, {stop});
  slice.set(Key::step, {1});
  slice.where = where;
  return append_inferred(out, std::move(slice));
}

bool has_fixed_sizes(const Type& type) {
  return std::all_of(type.shape.begin(), type.shape.end(),
                     [](const Expr& size) { return size.is_constant(); });
}

int64_t bytes_of(const Type& type) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t elements = std::clamp(product(type.shape).bounds().high, int64_t{0}, kMost);
  return std::min(elements * size_of(type.dtype), kMost);
}

std::optional<Literal> constant_value(const Graph& graph, int id) {
  while (is_view(graph[id].op)) id = graph[id].inputs[0];
  if (graph[id].op != Op::constant) return std::nullopt;
  return graph[id].value;
}

}  // namespace tiny_compile
