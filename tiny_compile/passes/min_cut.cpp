// Which edges part the source from the sink at the least cost? Those that are full when no more
// can flow (Ford and Fulkerson, 1956):
//
//   s -5-> a -2-> t      2 can flow by way of a, 3 by way of b
//   s -3-> b -9-> t        =>  the cut is a -> t and s -> b, and costs 5
//
// The flow is Dinic's (1970): levels by breadth-first search from the source, then paths that go
// one level down at each step, until all are full; then new levels. At most nodes^2 * edges steps,
// far fewer in networks of graphs.
#include "tiny_compile/passes/min_cut.h"

#include <algorithm>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

class Flow {
 public:
  explicit Flow(const Network& network) : leaving_(network.nodes) {
    for (const Network::Edge& edge : network.edges) {
      add(edge.from, edge.to, edge.capacity);
      add(edge.to, edge.from, 0);  // what flows may be taken back
    }
  }

  void fill(int source, int sink) {
    while (find_levels(source), level_[sink] >= 0) {
      next_.assign(leaving_.size(), 0);
      while (push_along_a_path(source, sink)) {
      }
    }
  }

  // From where something could still flow to the sink.
  std::vector<bool> reaching(int sink) const {
    std::vector<bool> found(leaving_.size());
    std::vector<int> open = {sink};
    found[sink] = true;
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      for (const int out : leaving_[node]) {  // the edge back of one that comes here
        const int from = to_[out];
        if (found[from] || left_[out ^ 1] == 0) continue;
        found[from] = true;
        open.push_back(from);
      }
    }
    return found;
  }

 private:
  void add(int from, int to, int64_t capacity) {
    leaving_[from].push_back(static_cast<int>(to_.size()));
    to_.push_back(to);
    left_.push_back(capacity);
  }

  void find_levels(int source) {
    level_.assign(leaving_.size(), -1);
    level_[source] = 0;
    std::vector<int> open = {source};
    for (size_t k = 0; k < open.size(); k++) {
      for (const int edge : leaving_[open[k]]) {
        if (left_[edge] == 0 || level_[to_[edge]] >= 0) continue;
        level_[to_[edge]] = level_[open[k]] + 1;
        open.push_back(to_[edge]);
      }
    }
  }

  // The first edge from a node that leads down and is not full; -1: none.
  int way_down(int node) {
    for (size_t& k = next_[node]; k < leaving_[node].size(); k++) {
      const int edge = leaving_[node][k];
      if (left_[edge] > 0 && level_[to_[edge]] == level_[node] + 1) return edge;
    }
    return -1;
  }

  bool push_along_a_path(int source, int sink) {
    std::vector<int> path;
    for (int node = source; node != sink;) {
      const int edge = way_down(node);
      if (edge >= 0) {
        path.push_back(edge);
        node = to_[edge];
        continue;
      }
      if (path.empty()) return false;
      node = to_[path.back() ^ 1];  // a dead end: back, and past it
      path.pop_back();
      next_[node]++;
    }
    int64_t most = kUncuttable;
    for (const int edge : path) most = std::min(most, left_[edge]);
    if (most == kUncuttable) fail("min_cut: nothing parts the source from the sink");
    for (const int edge : path) {
      if (left_[edge] != kUncuttable) left_[edge] -= most;
      if (left_[edge ^ 1] != kUncuttable) left_[edge ^ 1] += most;
    }
    return true;
  }

  std::vector<std::vector<int>>
      leaving_;  // of each node, its edges; edge e's way back is e ^ 1
  std::vector<int> to_;
  std::vector<int64_t> left_;  // what may still flow; kUncuttable never grows less
  std::vector<int> level_;
  std::vector<size_t> next_;  // of each node, the first edge that may lead down
};

}  // namespace

std::vector<bool> min_cut(const Network& network, int source, int sink) {
  Flow flow(network);
  flow.fill(source, sink);
  std::vector<bool> sides = flow.reaching(sink);
  sides.flip();
  return sides;
}

}  // namespace tiny_compile
