// Which kernels may become one? Those whose nodes have loops in common (08 says why not), where no
// third kernel stands between them, and where nothing that costs much is made again and again. What
// only they read is no longer an array: it is neither written nor read.
//
//   %1 = exp %0   %2 = sum %1   %3 = matmul %1, %0     =>  kernel {%1, %2} stores both
//     exp %1 with matmul %3: exp %1 would be made again for each element of matmul %3
//
// Greedy, in the order of the nodes: each kernel with those that it reads, then those that read the
// same array. Left out: a search for the best groups.
#pragma once

#include "lessons/small/08_text.h"

namespace small {

// Nodes in groups. A group's number is its first node's, -1: the node is computed in none.
struct Groups {
  const Graph& graph;
  Ids of = {};

  Group members(int64_t group) const {
    Group all;
    for (int64_t id = group; id < std::ssize(of); id++)
      if (of[id] == group) all.insert(id);
    return all;
  }
  std::set<int64_t> read_by(int64_t group) const {  // arrays
    std::set<int64_t> arrays;
    for (const int64_t id : members(group))
      for (const int64_t input : graph[id].inputs)
        if (const int64_t base = base_of(graph, input);
            of[base] != group && graph[base].op != Op::Constant)
          arrays.insert(base);
    return arrays;
  }
};

constexpr int64_t kMostKept = 1 << 15;  // elements of a row that is run through more than once

inline bool is_costly(Op op) {
  return info(op).kind == Kind::Pointwise && op != Op::Neg && op != Op::Add && op != Op::Sub &&
         op != Op::Mul;
}
// "" where these nodes may be one kernel.
inline std::string why_not(const Graph& graph, const Group& members) try {
  const Kernel kernel = loops_of(graph, members, stored_of(graph, members));
  if (arrays_of(kernel).size() > 64) return "a kernel has at most 64 arrays";
  const size_t reductions = reductions_of(kernel).size();
  const bool runs_again = reductions > 0 && reductions + stored_inside(kernel).size() > 1;
  if (runs_again && kernel.sizes.back() > kMostKept)
    return str("rows of ", kernel.sizes.back(), " are too long to be kept");
  unsigned turning = 0;  // loops of more than one turn
  for (size_t d = 0; d < kernel.sizes.size(); d++)
    turning |= unsigned{kernel.sizes[d] > 1} << d;
  for (int64_t id = 0; id < std::ssize(kernel.values); id++) {
    const Value& value = kernel.values[id];
    const unsigned around = inside_k(kernel, id) ? turning : turning & ~k_of(kernel);
    if (is_costly(value.op) && (value.loops & around) != around)
      return called(graph, value.node) + " would be made again and again";
  }
  return "";
} catch (const Error& refusal) {
  return refusal.what();
}

// The groups, each after those that it reads; fewer where two wait for each other.
inline Ids in_order(const Groups& groups) {
  const std::set<int64_t> all(groups.of.begin(), groups.of.end());
  std::set<int64_t> done = {-1};
  Ids order;
  for (size_t before = 0; before != done.size();) {
    before = done.size();
    for (const int64_t group : all) {
      const auto is_there = [&](int64_t array) { return done.contains(groups.of[array]); };
      if (!done.contains(group) && std::ranges::all_of(groups.read_by(group), is_there))
        done.insert(group), order.push_back(group);
    }
  }
  return order;
}

// Merges b into a, unless there is a reason not to.
inline void merge(Groups& groups, int64_t a, int64_t b, std::set<std::string>& refusals) {
  if (a < 0 || a == b) return;
  Groups both{groups.graph, groups.of};
  std::ranges::replace(both.of, std::max(a, b), std::min(a, b));
  std::string why = why_not(groups.graph, both.members(std::min(a, b)));
  if (why.empty() && in_order(both).size() + 1 < in_order(groups).size())
    why = "another kernel stands between them";
  if (why.empty())
    groups.of = both.of;
  else
    refusals.insert(called(groups.graph, *groups.members(a).rbegin()) + " with " +
                    called(groups.graph, *groups.members(b).rbegin()) + ": " + why);
}

inline Program fuse(const Graph& graph) {
  verify(graph);
  const std::vector<bool> is_needed = needed(graph);
  Groups groups{graph};
  for (int64_t id = 0; id < graph.size(); id++)
    groups.of.push_back(is_computed(graph, id) && is_needed[id] ? id : -1);
  std::set<std::string> refusals, others;
  for (int64_t id = 0; id < graph.size(); id++)
    if (groups.of[id] >= 0)
      for (const int64_t array : groups.read_by(groups.of[id]))
        merge(groups, groups.of[array], groups.of[id], refusals);
  for (int64_t a = 0; a < graph.size(); a++)
    for (int64_t b = a + 1; b < graph.size(); b++)
      for (const int64_t array : groups.read_by(b))
        if (groups.of[a] == a && groups.read_by(a).contains(array))
          merge(groups, a, groups.of[b], others);
  Program program{graph, {}, {refusals.begin(), refusals.end()}};
  for (const int64_t group : in_order(groups)) {
    const Group members = groups.members(group);
    program.kernels.push_back(loops_of(graph, members, stored_of(graph, members)));
  }
  return program;
}

}  // namespace small
