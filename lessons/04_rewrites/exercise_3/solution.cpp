#include "exercise.h"

#include <optional>

namespace exercise {
namespace {

bool may_raise(const Node& node) {
  return (node.op == Op::floor_divide || node.op == Op::remainder) &&
         !is_float(node.type.dtype);
}

// The one shape that all operands are expanded from; numbers have no say, if there are others.
std::optional<Shape> common_source(const Graph& out, const Node& node) {
  Shape common;
  for (int input : node.inputs) {
    if (out[input].op != Op::expand) return std::nullopt;
    const Shape& shape = out[out[input].inputs[0]].type.shape;
    if (shape.empty()) continue;
    if (!common.empty() && shape != common) return std::nullopt;
    common = shape;
  }
  return common;
}

int expand_to(Graph& out, int id, const Shape& shape, const Location& where) {
  if (out[id].type.shape == shape) return id;
  Node node;
  node.op = Op::expand;
  node.inputs = {id};
  node.type = {out[id].type.dtype, shape};
  node.where = where;
  return out.append(std::move(node));
}

}  // namespace

Graph work_first(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    if (!is_pointwise(node.op) || may_raise(node)) return out.append(std::move(node));
    const std::optional<Shape> source = common_source(out, node);
    const Shape wide = node.type.shape;
    if (!source || product(*source) == product(wide)) return out.append(std::move(node));
    for (int& input : node.inputs)
      input = expand_to(out, out[input].inputs[0], *source, node.where);
    const Location where = node.where;
    node.type.shape = *source;
    return expand_to(out, out.append(std::move(node)), wide, where);
  });
}

}  // namespace exercise
