// When may one node take another's place? When the bits are the same for every input, and -0, infinity
// and (quiet) NaN are inputs too. A rule looks at a node and may name a better one; "detach %0" is
// the name of %0 itself, and no detach is left at the end.
//
//   %2 = constant 1   %3 = mul %0, %2   %4 = add %3, %1     =>     %4 = add %0, %1
//
// x + 0 is not x: for -0 it is +0. x + -0 is x, and so is x - 0. Left out: rules that add more than
// one node, and whatever rounds differently, such as x / 3 => x * (1 / 3).
#pragma once

#include "lessons/small/03_interpreter.h"

namespace small {

using Replacement = std::optional<Node>;
using Rule = std::function<Replacement(const Graph&, const Node&)>;

inline Node as(const Node& node, int64_t id) {
  return {Op::Detach, {id}, node.shape, {}, 0, node.where};
}
inline bool is_constant(const Graph& graph, int64_t id, float value) {
  return graph[id].op == Op::Constant &&
         std::bit_cast<unsigned>(graph[id].value) == std::bit_cast<unsigned>(value);
}

// x (op) value => x, or value (op) x => x.
inline Rule neutral(Op op, float value, bool either_side) {
  return [=](const Graph& graph, const Node& node) -> Replacement {
    if (node.op != op) return {};
    if (is_constant(graph, node.inputs[1], value)) return as(node, node.inputs[0]);
    const bool first = either_side && is_constant(graph, node.inputs[0], value);
    return first ? Replacement(as(node, node.inputs[1])) : std::nullopt;
  };
}

// op (op x) => one op, or x itself where nothing moves.
inline Replacement merged_view(const Graph& graph, const Node& node) {
  if (info(node.op).kind != Kind::View) return {};
  const Node& inner = graph[node.inputs[0]];
  Axes identity(node.axes.size());
  std::iota(identity.begin(), identity.end(), 0);
  if (node.shape == inner.shape && node.axes == identity) return as(node, node.inputs[0]);
  if (node.op != inner.op || node.op == Op::Detach) return {};
  Node merged = node;
  merged.inputs = inner.inputs;
  for (int64_t& axis : merged.axes) axis = inner.axes[axis];
  return merged;
}

// An operation on constants is a constant.
inline Replacement folded(const Graph& graph, const Node& node) {
  const bool moves = info(node.op).kind == Kind::View;
  if (!moves && info(node.op).kind != Kind::Pointwise) return {};
  for (const int64_t input : node.inputs)
    if (graph[input].op != Op::Constant) return {};
  const Array x{graph[node.inputs.front()].value}, y{graph[node.inputs.back()].value};
  const float value = moves ? x[0] : element(Numbers{x, y}, graph, node, 0);
  return Node{Op::Constant, {}, node.shape, {}, value, node.where};
}

inline Replacement negated_twice(const Graph& graph, const Node& node) {
  if (node.op != Op::Neg || graph[node.inputs[0]].op != Op::Neg) return {};
  return as(node, graph[node.inputs[0]].inputs[0]);
}

inline std::vector<Rule> sound_rules() {
  return {neutral(Op::Mul, 1, true),
          neutral(Op::Div, 1, false),
          neutral(Op::Add, -0.0f, true),
          neutral(Op::Sub, 0, false),
          negated_twice,
          merged_view,
          folded};
}

// The graph with each node to be kept (all, if `keep` is empty) as the rules rewrite it.
inline Graph rewrite(const Graph& graph, const std::vector<Rule>& rules = sound_rules(),
                     const std::vector<bool>& keep = {}) {
  Graph result;
  Ids now;  // what each node has become
  for (Node node : graph.nodes) {
    if (!keep.empty() && !keep[now.size()]) {
      now.push_back(-1);
      continue;
    }
    for (int64_t& input : node.inputs) input = now[input];
    for (size_t r = 0; r < rules.size() && node.op != Op::Detach;) {
      const Replacement better = rules[r](result, node);
      if (better) node = *better;
      r = better ? 0 : r + 1;
    }
    now.push_back(node.op == Op::Detach ? node.inputs[0] : result.add(node));
  }
  for (const int64_t output : graph.outputs) result.outputs.push_back(now[output]);
  return result;
}

}  // namespace small
