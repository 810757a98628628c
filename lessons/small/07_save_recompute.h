// What does backward keep of forward? It needs some of its values: each is kept, or made again from
// others that are kept. Reductions and products never are; of all other choices a minimum cut
// takes the one of fewest bytes: what is kept cuts every path from them and from the inputs, which are
// there anyway, to what backward reads.
//
//   %1 = exp %0   %2 = exp %1   loss = sum %2     backward reads %1, %2  =>  it makes both again
//
// Optional: no later step uses it, and CSE (05) undoes it. Left out: what making it again costs.
#pragma once

#include <map>

#include "lessons/small/06_autodiff.h"

namespace small {

using Residual = std::vector<std::map<int64_t, int64_t>>;  // residual capacities: [from][to]
constexpr int64_t kUnlimited = INT64_MAX / 2;

// Sends flow along one path; how much, 0 if there is none. Marks the places reached.
inline int64_t augment(Residual& residual, int64_t from, int64_t to, int64_t most,
                       std::vector<bool>& reached) {
  if (from == to) return most;
  reached[from] = true;
  for (auto& [next, left] : residual[from]) {
    if (left == 0 || reached[next]) continue;
    const int64_t through = augment(residual, next, to, std::min(most, left), reached);
    left -= through, residual[next][from] += through;
    if (through > 0) return through;
  }
  return 0;
}

// The first result's nodes are forward's, all others backward's.
inline std::vector<bool> forward_of(const Graph& graph) {
  Graph loss = graph;
  loss.outputs.resize(1);
  return needed(loss);
}

// Which forward values are kept: a cut between 2n (n is made) and 2n + 1 (n is read) costs n's bytes.
inline std::set<int64_t> kept_values(const Graph& graph) {
  const std::vector<bool> forward = forward_of(graph);
  const int64_t source = 2 * graph.size(), sink = source + 1;
  Residual residual(sink + 1);
  for (int64_t id = 0; id < graph.size(); id++) {
    const Kind kind = info(graph[id].op).kind;
    const bool cheap = kind == Kind::Pointwise || kind == Kind::View;
    if (!cheap && graph[id].op != Op::Constant) residual[source][2 * id] = kUnlimited;
    residual[2 * id][2 * id + 1] = graph[id].op == Op::Input ? 0 : 4 * count(graph[id].shape);
    for (const int64_t input : graph[id].inputs)
      if (forward[input]) residual[2 * input + 1][forward[id] ? 2 * id : sink] = kUnlimited;
  }
  std::vector<bool> reached;
  do reached.assign(sink + 1, false);
  while (augment(residual, source, sink, kUnlimited, reached) > 0);
  std::set<int64_t> kept;
  for (int64_t id = 0; id < graph.size(); id++)
    if (forward[id] && reached[2 * id] && !reached[2 * id + 1]) kept.insert(id);
  return kept;
}

// The graph whose backward part makes again what it does not keep.
inline Graph recompute(const Graph& graph) {
  if (graph.outputs.empty()) return graph;
  if (graph.size() > 1 << 14)
    throw Error("more than 16384 nodes: a path through them is too long");
  const std::set<int64_t> kept = kept_values(graph);
  const std::vector<bool> forward = forward_of(graph);
  Graph result;
  std::map<int64_t, int64_t> now, copies;  // what a node has become; for backward
  const std::function<int64_t(int64_t, bool)> made = [&](int64_t id, bool backward) {
    const bool again =
        backward && forward[id] && !kept.contains(id) && graph[id].op != Op::Constant;
    auto& known = again ? copies : now;
    if (!known.contains(id)) {
      Node node = graph[id];
      for (int64_t& input : node.inputs) input = made(input, backward);
      known[id] = result.add(node);
    }
    return known[id];
  };
  for (const bool part : {true, false})
    for (int64_t id = 0; id < graph.size(); id++)
      if (forward[id] == part) made(id, !part);
  for (const int64_t output : graph.outputs) result.outputs.push_back(now.at(output));
  return result;
}

}  // namespace small
