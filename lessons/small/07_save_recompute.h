// What does backward keep of forward? It needs some of its values: each is kept, or made again from
// others that are kept. Sums and products are never made again; of all other choices a minimum cut
// takes the one of fewest bytes: what is kept cuts each way from them and from the inputs, which are
// there anyway, to what backward reads.
//
//   %1 = exp %0   %2 = exp %1   loss = sum %2     backward reads %1, %2  =>  it makes both again
//
// Left out: what making it again costs.
#pragma once

#include "lessons/small/06_autodiff.h"

namespace small {

// Pipes between numbered places, and how much more each can carry.
struct Network {
  std::vector<std::map<int64_t, int64_t>> room;

  // What went through along one way, 0 where there is none; marks the places that it came to.
  int64_t push(int64_t from, int64_t to, int64_t most, std::vector<bool>& reached) {
    if (from == to) return most;
    reached[from] = true;
    for (auto& [next, left] : room[from]) {
      if (left == 0 || reached[next]) continue;
      const int64_t through = push(next, to, std::min(most, left), reached);
      left -= through, room[next][from] += through;
      if (through > 0) return through;
    }
    return 0;
  }
};

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
  Network network{std::vector<std::map<int64_t, int64_t>>(sink + 1)};
  for (int64_t id = 0; id < graph.size(); id++) {
    const Kind kind = info(graph[id].op).kind;
    const bool again = kind == Kind::Pointwise || kind == Kind::View;
    if (!again && graph[id].op != Op::Constant) network.room[source][2 * id] = kMost;
    network.room[2 * id][2 * id + 1] =
        graph[id].op == Op::Input ? 0 : 4 * count(graph[id].shape);
    for (const int64_t input : graph[id].inputs)
      if (forward[input]) network.room[2 * input + 1][forward[id] ? 2 * id : sink] = kMost;
  }
  std::vector<bool> reached;
  do reached.assign(sink + 1, false);
  while (network.push(source, sink, kMost, reached) > 0);
  std::set<int64_t> kept;
  for (int64_t id = 0; id < graph.size(); id++)
    if (forward[id] && reached[2 * id] && !reached[2 * id + 1]) kept.insert(id);
  return kept;
}

// The graph whose backward part makes again what it does not keep.
struct Recomputation {
  const Graph& graph;
  std::set<int64_t> kept = kept_values(graph);
  std::vector<bool> forward = forward_of(graph);
  Graph result = {};
  std::map<int64_t, int64_t> now = {}, again = {};  // what a node has become

  int64_t copy(Node node, bool is_backward) {
    for (int64_t& input : node.inputs) input = is_backward ? in_backward(input) : now.at(input);
    return result.add(node);
  }
  int64_t in_backward(int64_t id) {
    if (!forward[id] || kept.contains(id) || graph[id].op == Op::Constant) return now.at(id);
    if (!again.contains(id)) again[id] = copy(graph[id], true);
    return again.at(id);
  }
};

inline Graph recompute(const Graph& graph) {
  if (graph.outputs.empty()) return graph;
  Recomputation r{graph};
  for (const bool part : {true, false})
    for (int64_t id = 0; id < graph.size(); id++)
      if (r.forward[id] == part) r.now[id] = r.copy(graph[id], !part);
  for (const int64_t output : graph.outputs) r.result.outputs.push_back(r.now.at(output));
  return r.result;
}

}  // namespace small
