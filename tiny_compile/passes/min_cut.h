// The cheapest way to part a network in two.
#pragma once

#include <cstdint>
#include <vector>

namespace tiny_compile {

inline constexpr int64_t kUncuttable = int64_t{1} << 62;

// Directed edges between nodes 0 .. nodes-1.
struct Network {
  struct Edge {
    int from, to;
    int64_t capacity;  // what cutting it costs, 0 .. kUncuttable
  };
  int nodes = 0;
  std::vector<Edge> edges;
};

// Of the cuts of least capacity the one next to the sink: whether each node stands on the
// source's side. Throws tc::Error where every cut would cut an uncuttable edge. The capacities of
// all others together stay below kUncuttable.
std::vector<bool> min_cut(const Network& network, int source, int sink);

}  // namespace tiny_compile
