// What does a graph mean? The interpreter says it: one node after the other, element by element.
// Compiled code must give the same bits. The first generator is the same function once more, given
// names where the interpreter has numbers, as a traced function is given handles:
//
//   %3: f32[4,2] = expand %2       element 5   =>  the number at 5 / 2 % 4 of %2
//                                  element "i" =>  b[2][(((i / 2) % 4) * 1)]
//
// Each node is a kernel: its loop (C++) or its threads (CUDA) make an element each. Left out: all
// that is fast.
#pragma once

#include <cmath>

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
    case Op::Exp: return tc_exp(w.x(i));
    case Op::Log: return tc_log(w.x(i));
    case Op::Rsqrt: return tc_rsqrt(w.x(i));
    case Op::Erf: return tc_erf(w.x(i));
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
      const auto all = halves(w, node.op == Op::Max, count(rest),
                              [&](Index k) { return w.x(first + place(k, rest, steps)); });
      return count(rest) == 0 || node.op == Op::Max ? all + w.constant(0) : all;
    }
    case Op::Matmul:
      return w.product(
                 from[1], [&](Index k) { return w.x(i / node.shape[1] * from[1] + k); },
                 [&](Index k) { return w.y(k * node.shape[1] + i % node.shape[1]); }) +
             w.constant(0);
    default: return w.x(i);  // reshape, detach
  }
}

// The graph's results; `make` fills a node's array from those before it.
using Make = std::function<void(int64_t id, std::vector<Array>& arrays)>;
inline std::vector<Array> in_order(const Graph& graph, std::vector<Array> arrays,
                                   const Make& make) {
  for (int64_t id = 0; id < graph.size(); id++) {
    const int64_t elements = count(graph[id].shape);
    if (graph[id].op != Op::Input && id == std::ssize(arrays)) arrays.emplace_back(elements);
    if (id >= std::ssize(arrays) || std::ssize(arrays[id]) != elements)
      fail(graph[id].where,
           "%" + std::to_string(id) + " is given no " + listed(graph[id].shape));
  }
  for (int64_t id = 0; id < graph.size(); id++)
    if (graph[id].op != Op::Input) make(id, arrays);
  std::vector<Array> results;
  for (const int64_t output : graph.outputs) results.push_back(arrays[output]);
  return results;
}
inline std::vector<Array> interpret(const Graph& graph, const std::vector<Array>& inputs) {
  verify(graph);
  return in_order(graph, inputs, [&](int64_t id, std::vector<Array>& arrays) {
    const Ids in = graph[id].inputs.empty() ? Ids{id} : graph[id].inputs;
    const Numbers numbers{arrays[in.front()], arrays[in.back()]};
    for (size_t i = 0; i < arrays[id].size(); i++)
      arrays[id][i] = element(numbers, graph, graph[id], i);
  });
}

// A kernel for each node that is no input: k3 writes b[3].
inline std::string kernels_of(const Graph& graph, bool cuda) {
  const auto array = [](int64_t id) { return "b[" + std::to_string(id) + "]"; };
  std::string text;
  for (int64_t id = 0; id < graph.size(); id++) {
    if (graph[id].op == Op::Input) continue;
    const Ids in = graph[id].inputs.empty() ? Ids{id} : graph[id].inputs;
    const Names names{array(in.front()), array(in.back())};
    const Text value = element(names, graph, graph[id], Text("i"));
    text += kernel("k" + std::to_string(id), count(graph[id].shape),
                   array(id) + "[i] = " + value.s + ";", cuda);
  }
  return text;
}

// The graph's kernels, compiled: called with inputs, they run in order.
struct LoopPerOp {
  Graph graph;
  CpuLibrary library;

  explicit LoopPerOp(Graph of) : graph(std::move(of)) {
    verify(graph);
    library = compile_cpp(kernels_of(graph, false));
  }
  std::vector<Array> operator()(const std::vector<Array>& inputs) const {
    std::vector<float*> b;
    return in_order(graph, inputs, [&](int64_t id, std::vector<Array>& arrays) {
      for (size_t k = b.size(); k < arrays.size(); k++) b.push_back(arrays[k].data());
      kernel_of(library, "k" + std::to_string(id))(b.data());
    });
  }
};

}  // namespace small
