// How is a graph differentiated? From the loss backwards: each node passes the gradient of its
// result on to its operands, by one rule for each operation; what comes from several
// readers is added up. The rules write ordinary nodes, on the user's line that they differentiate.
//
//   %1 = exp %0   %2 = sum %1   return %2
//     =>  %3 = constant 1   %4 = expand %3   %5 = mul %4, %1   return %2, %5
//
// Left out: a derivative of max (detach it: softmax does not depend on it), forward mode.
#pragma once

#include "lessons/small/05_cse_dce.h"

namespace small {

inline Tensor sum_to(const Tensor& g, const Shape& shape) {
  Axes axes;
  for (size_t k = 0; k < shape.size(); k++)
    if (shape[k] != g.shape()[k]) axes.push_back(static_cast<int64_t>(k));
  return axes.empty() ? g : sum(g, axes);
}
inline Axes inverse(const Axes& axes) {
  Axes back(axes.size());
  for (size_t k = 0; k < axes.size(); k++) back[axes[k]] = static_cast<int64_t>(k);
  return back;
}

// The operands' gradients, where a node's result y has gradient g. Empty: they have none.
inline Tensors pull_back(const Node& node, const Tensors& x, const Tensor& y, const Tensor& g) {
  constexpr double kTwoByRootPi = 1.1283791670955126;
  switch (node.op) {
    case Op::Neg: return {-g};
    case Op::Exp: return {g * y};
    case Op::Log: return {g / x[0]};
    case Op::Rsqrt: return {g * y * y * y * -0.5};
    case Op::Erf: return {g * (exp(-(x[0] * x[0])) * kTwoByRootPi)};
    case Op::Add: return {g, g};
    case Op::Sub: return {g, -g};
    case Op::Mul: return {g * x[1], g * x[0]};
    case Op::Div: return {g / x[1], -(g * y / x[1])};
    case Op::Reshape: return {reshape(g, x[0].shape())};
    case Op::Permute: return {permute(g, inverse(node.axes))};
    case Op::Expand: return {sum_to(g, x[0].shape())};
    case Op::Sum: return {expand(g, x[0].shape())};
    case Op::Matmul:
      return {matmul(g, permute(x[1], {1, 0})), matmul(permute(x[0], {1, 0}), g)};
    case Op::Max: fail(node.where, "max has no derivative here: detach it, or what reads it");
    default: return {};
  }
}

// Which nodes depend on one of these.
inline std::vector<bool> depends_on(const Graph& graph, const Ids& these) {
  std::vector<bool> depends(graph.nodes.size());
  for (int64_t id = 0; id < graph.size(); id++) {
    depends[id] = std::ranges::count(these, id) > 0;
    if (graph[id].op == Op::Detach) continue;
    for (const int64_t input : graph[id].inputs) depends[id] = depends[id] || depends[input];
  }
  return depends;
}

// The graph with the gradients of its first result, one number, by the inputs `wrt`, as further
// results.
inline Graph with_gradients(Graph graph, const Ids& wrt) {
  verify(graph);
  if (graph.outputs.empty()) fail({}, "a graph that returns nothing has no gradient");
  const int64_t loss = graph.outputs[0], forward = graph.size();
  if (count(graph[loss].shape) != 1)
    fail(graph[loss].where, "a loss is one number, not " + listed(graph[loss].shape));
  const std::vector<bool> matters = depends_on(graph, wrt);
  Tensors grads(static_cast<size_t>(forward));  // of each node, from its readers so far
  const auto constant = [&](int64_t id, float value) {
    return Tensor{&graph,
                  graph.add({Op::Constant, {}, graph[id].shape, {}, value, graph[id].where})};
  };
  grads[loss] = constant(loss, 1);
  for (int64_t id = loss; id >= 0; id--) {
    if (!grads[id].graph || !matters[id]) continue;
    const Node node = graph[id];  // a copy: the graph grows
    const int64_t first = graph.size();
    Tensors x;
    for (const int64_t input : node.inputs) x.push_back({&graph, input});
    const Tensors back = pull_back(node, x, {&graph, id}, grads[id]);
    for (size_t k = 0; k < back.size(); k++) {
      Tensor& grad = grads[node.inputs[k]];
      grad = grad.graph ? grad + back[k] : back[k];
    }
    for (int64_t made = first; made < graph.size(); made++)
      graph.nodes[made].where = node.where;
  }
  for (const int64_t input : wrt) {
    if (input < 0 || input >= forward) fail({}, str("there is no %", input));
    graph.outputs.push_back((grads[input].graph ? grads[input] : constant(input, 0)).id);
  }
  return graph;
}

}  // namespace small
