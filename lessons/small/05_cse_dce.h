// When are two nodes one value? When they do the same to the same operands: the second's
// readers may read the first. When is a node dead? When no result needs it.
//
//   %2 = exp %0   %3 = exp %0   %4 = neg %1   %5 = add %2, %3   return %5
//     =>  %2 = exp %0   %3 = add %2, %2   return %3
//
// A sweep backwards finds what is needed; a rule (04), what is repeated. Left out: a + b = b + a.
#pragma once

#include <tuple>

#include "lessons/small/04_rewrites.h"

namespace small {

// What a result needs, and all inputs: each call brings them.
inline std::vector<bool> needed(const Graph& graph) {
  std::vector<bool> is_needed(graph.nodes.size());
  for (const int64_t output : graph.outputs) is_needed[output] = true;
  for (int64_t id = graph.size(); id-- > 0;) {
    if (graph[id].op == Op::Input) is_needed[id] = true;
    for (const int64_t input : graph[id].inputs)
      if (is_needed[id]) is_needed[input] = true;
  }
  return is_needed;
}

// A rule: an equal node's name.
inline Replacement seen(const Graph& graph, const Node& node) {
  const auto key = [](const Node& n) { return std::tie(n.op, n.inputs, n.shape, n.axes); };
  const auto equal = [&](const Node& other) {
    return key(node) == key(other) &&
           std::bit_cast<unsigned>(node.value) == std::bit_cast<unsigned>(other.value);
  };
  const auto first = std::ranges::find_if(graph.nodes, equal) - graph.nodes.begin();
  return node.op == Op::Input || first == graph.size() ? std::nullopt
                                                       : Replacement(as(node, first));
}

inline Graph cse_dce(const Graph& graph) { return rewrite(graph, {seen}, needed(graph)); }

}  // namespace small
