// What does a graph mean? The interpreter says it: one node after the other, element by element.
// Compiled code must give the same bits. The first generator is the same function once more, given
// names where the interpreter has numbers, as a traced function is given handles:
//
//   %3: f32[4,2] = expand %2       element 5   =>  the number at 5 / 2 % 4 of %2
//                                  element "i" =>  b0[(((i % 2) * 0) + ((i / 2) % 4))]
//
// Each node is a kernel: its loop (C++) or its threads (CUDA) make an element each. Left out: all
// that is fast.
#pragma once

#include "lessons/small/00_run.h"
#include "lessons/small/02_graph.h"

namespace small {

// Element i of a node.
template <typename World>
typename World::Value element(const World& w, const Graph& graph, const Node& node,
                              const typename World::Index& i) {
  using Index = typename World::Index;
  const Shape from = node.inputs.empty() ? Shape{} : graph[node.inputs[0]].shape;
  Shape steps = strides_of(from), rest = from;
  switch (node.op) {
    case Op::Constant: return w.constant(node.value);
    case Op::Neg: return -w.x(i);
    case Op::Exp:
    case Op::Log:
    case Op::Rsqrt:
    case Op::Erf: return w.unary(info(node.op).name, info(node.op).of, w.x(i));
    case Op::Add: return w.x(i) + w.y(i);
    case Op::Sub: return w.x(i) - w.y(i);
    case Op::Mul: return w.x(i) * w.y(i);
    case Op::Div: return w.x(i) / w.y(i);
    case Op::Expand:
      for (size_t k = 0; k < from.size(); k++) steps[k] = from[k] == 1 ? 0 : steps[k];
      return w.x(place(i, node.shape, steps));
    case Op::Permute:
      for (size_t k = 0; k < from.size(); k++) rest[k] = steps[node.axes[k]];
      return w.x(place(i, node.shape, rest));
    case Op::Sum:
    case Op::Max: {
      for (size_t k = 0; k < from.size(); k++) rest[k] = from[k] == node.shape[k] ? 1 : from[k];
      const Index first = place(i, node.shape, steps);
      return w.halves(node.op == Op::Max, count(rest),
                      [&](Index k) { return w.x(first + place(k, rest, steps)); });
    }
    case Op::Matmul:
      return w.product(
          from[1], [&](Index k) { return w.x(i / node.shape[1] * from[1] + k); },
          [&](Index k) { return w.y(k * node.shape[1] + i % node.shape[1]); });
    default: return w.x(i);  // reshape, detach
  }
}

// Arrays for all nodes; no kernels yet.
inline Plan plan_of(const Graph& graph) {
  Plan plan = {.outputs = graph.outputs};
  for (const Node& node : graph.nodes) {
    plan.arrays.push_back(node.shape);
    plan.inputs += node.op == Op::Input;
  }
  return plan;
}

inline std::vector<Array> interpret(const Graph& graph, const std::vector<Array>& inputs) {
  verify(graph);
  check_inputs(plan_of(graph), inputs);
  std::vector<Array> arrays = inputs;
  for (int64_t id = std::ssize(inputs); id < graph.size(); id++) {
    Array& made = arrays.emplace_back(count(graph[id].shape));
    const Ids in = graph[id].inputs.empty() ? Ids{id} : graph[id].inputs;
    const Numbers numbers{arrays[in.front()], arrays[in.back()]};
    for (size_t i = 0; i < made.size(); i++) made[i] = element(numbers, graph, graph[id], i);
  }
  std::vector<Array> results;
  for (const int64_t output : graph.outputs) results.push_back(arrays[output]);
  return results;
}

// The first generator: a kernel for each node but the inputs. Its last array is the node's own.
inline Plan loop_per_op(const Graph& graph, bool cuda) {
  verify(graph);
  Plan plan = plan_of(graph);
  for (auto id = static_cast<int64_t>(plan.inputs); id < graph.size(); id++) {
    const int64_t points = count(graph[id].shape);
    Launch launch = {"k" + std::to_string(id), graph[id].inputs, (points + 255) / 256};
    launch.arrays.push_back(id);
    const Names names{"b0", launch.arrays.size() > 2 ? "b1" : "b0"};
    const Text value = element(names, graph, graph[id], Text("i"));
    const std::string each =
        cuda ? str("const long long i = block * 256ll + threadIdx.x;\n  if (i < ", points, ") ")
             : str("for (long long i = 0; i < ", points, "; i++) ");
    launch.text = str(head(launch, cuda), "  ", each, "b", launch.arrays.size() - 1,
                      "[i] = ", value, ";\n}\n");
    plan.launches.push_back(launch);
  }
  return plan;
}

}  // namespace small
