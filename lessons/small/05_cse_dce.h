// When are two nodes one value? When they do the same to the same operands, and then the second
// reader may read the first. When is a node none? When no result needs it.
//
//   %2 = exp %0   %3 = exp %0   %4 = neg %1   %5 = add %2, %3   return %5
//     =>  %2 = exp %0   %3 = add %2, %2   return %3
//
// One sweep backwards finds what is needed, one forwards what is new. Left out: a + b = b + a.
#pragma once

#include <map>
#include <tuple>

#include "lessons/small/04_rewrites.h"

namespace small {

// What a result needs, and all inputs, for a call brings them.
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

// Two nodes with the same key have the same value. An input's is its number.
using Key = std::tuple<Op, Ids, Shape, Axes, unsigned>;
inline Key key_of(const Node& node, int64_t id) {
  const Ids reads = node.op == Op::Input ? Ids{id} : node.inputs;
  return {node.op, reads, node.shape, node.axes, std::bit_cast<unsigned>(node.value)};
}

inline Graph cse_dce(const Graph& graph) {
  const std::vector<bool> keep = needed(graph);
  Graph result;
  Ids now(graph.nodes.size());  // what each node has become
  std::map<Key, int64_t> known;
  for (int64_t id = 0; id < graph.size(); id++) {
    if (!keep[id]) continue;
    Node node = graph[id];
    for (int64_t& input : node.inputs) input = now[input];
    const auto [first, is_new] = known.emplace(key_of(node, id), result.size());
    if (is_new) result.add(node);
    now[id] = first->second;
  }
  for (const int64_t output : graph.outputs) result.outputs.push_back(now[output]);
  return result;
}

}  // namespace small
