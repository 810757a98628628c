// Which kernels may become one? Those whose nodes have loops in common (08 says why not), where no
// third kernel stands between them, and where nothing that costs much is made again and again. What
// only they read is then no array any more: it is neither written nor read.
//
//   %1 = exp %0   %2 = sum %1   %3 = matmul %1, %0     =>  kernel {%1, %2} stores both
//     exp %1 with matmul %3: exp %1 would be made again for each element of matmul %3
//
// Greedy, in the order of the nodes: each kernel with those that it reads, then those that read the
// same array. Left out: a search for the best groups.
#pragma once

#include "lessons/small/08_text.h"

namespace small {

struct Fusion {
  Program program;
  std::vector<std::string> refusals;  // each once
};

// Groups of computed nodes, and for each node the number of its group (-1: it has none).
struct Groups {
  const Graph& graph;
  std::vector<Group> all = {};
  Ids of = {};

  std::set<int64_t> read_by(int64_t group) const {  // arrays
    std::set<int64_t> arrays;
    for (const int64_t id : all[group])
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
  const auto is_product = [&](int64_t id) { return graph[id].op == Op::Matmul; };
  if (std::ranges::count_if(members, is_product) > 1) return "two products are two kernels";
  const bool again = !reductions_of(kernel).empty() &&
                     reductions_of(kernel).size() + stored_inside(kernel).size() > 1;
  if (again && kernel.sizes.back() > kMostKept)
    return "rows of " + std::to_string(kernel.sizes.back()) + " are too long to be kept";
  unsigned all = 0;  // loops of more than one turn
  for (size_t d = 0; d < kernel.sizes.size(); d++) all |= unsigned{kernel.sizes[d] > 1} << d;
  for (int64_t id = 0; id < std::ssize(kernel.values); id++) {
    const Value& value = kernel.values[id];
    const unsigned scope = inside_k(kernel, id) ? all : all & ~k_of(kernel);
    if (is_costly(value.op) && (value.loops & scope) != scope)
      return called(graph, value.node) + " would be made again and again";
  }
  return "";
} catch (const Refusal& refusal) {
  return refusal.what();
}

// The groups, each after those that it reads; not all of them where two wait for each other.
inline Ids in_order(const Groups& groups) {
  Ids order;
  std::vector<bool> done(groups.all.size());
  const auto is_ready = [&](int64_t array) {
    return groups.of[array] < 0 || done[groups.of[array]];
  };
  for (size_t before = -1; before != order.size();) {
    before = order.size();
    for (int64_t g = 0; g < std::ssize(groups.all); g++) {
      if (done[g] || !std::ranges::all_of(groups.read_by(g), is_ready)) continue;
      done[g] = true;
      if (!groups.all[g].empty()) order.push_back(g);
    }
  }
  return order;
}

// The groups with b in a, unless there is a reason not to.
inline void merge(Groups& groups, int64_t a, int64_t b, std::set<std::string>& refusals) {
  if (a < 0 || a == b) return;
  Groups both = groups;
  both.all[a].merge(both.all[b]);
  for (const int64_t id : both.all[a]) both.of[id] = a;
  std::string why = why_not(groups.graph, both.all[a]);
  const auto full = std::ranges::count_if(both.all, [](const Group& g) { return !g.empty(); });
  if (why.empty() && std::ssize(in_order(both)) < full)
    why = "another kernel stands between them";
  if (why.empty())
    groups.all = both.all, groups.of = both.of;
  else
    refusals.insert(called(groups.graph, *groups.all[a].rbegin()) + " with " +
                    called(groups.graph, *groups.all[b].rbegin()) + ": " + why);
}

inline Fusion fuse(const Graph& graph) {
  Groups groups{graph};
  groups.of.assign(graph.nodes.size(), -1);
  for (int64_t id = 0; id < graph.size(); id++) {
    if (!is_computed(graph, id)) continue;
    groups.of[id] = std::ssize(groups.all);
    groups.all.push_back({id});
  }
  std::set<std::string> refusals, others;
  for (int64_t id = 0; id < graph.size(); id++)
    if (groups.of[id] >= 0)
      for (const int64_t array : groups.read_by(groups.of[id]))
        merge(groups, groups.of[array], groups.of[id], refusals);
  for (int64_t a = 0; a < std::ssize(groups.all); a++)
    for (int64_t b = a + 1; b < std::ssize(groups.all); b++)
      for (const int64_t array : groups.read_by(b))
        if (groups.read_by(a).contains(array) && !groups.all[b].empty())
          merge(groups, a, b, others);
  Program program{graph, {}};
  for (const int64_t g : in_order(groups))
    program.kernels.push_back(loops_of(graph, groups.all[g], stored_of(graph, groups.all[g])));
  return {program, {refusals.begin(), refusals.end()}};
}

}  // namespace small
