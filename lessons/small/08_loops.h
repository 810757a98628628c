// Which loops is an operation? One for each axis of its result and, where it reduces, one more
// inside them, k. What several operations do in the same loops is one kernel: its values, each made
// of earlier ones, and where they are stored.
//
//   %1: f32[4,3] = permute %0   %2: f32[4,3] = exp %1   %3: f32[4,1] = sum %2 {axes=[1]}
//     =>  for i0 < n4, each k < n3:
//           v0 = %0 [k,i0]   v1 = exp v0   v2 = sum v1   %3 [i0,0] = v2
//
// A value is known by its node and its place and is made once for each place.
#pragma once

#include "lessons/small/08_indices.h"

namespace small {

using Group = std::set<int64_t>;  // nodes that are computed in one kernel
struct Value {
  Op op;         // Input: an element of an array
  Ids operands;  // earlier values
  int64_t node;
  Place at;
  unsigned loops;  // that it depends on
};
struct Store {
  int64_t value, node;
  Place at;
};
struct Kernel {
  Shape sizes;             // of the loops; the last is k's
  bool in_chunks = false;  // its results are those of chunks of k (12_split)
  std::vector<Value> values;
  std::vector<Store> stores;
};
inline unsigned k_of(const Kernel& kernel) { return 1u << (kernel.sizes.size() - 1); }
inline bool reduces(Op op) { return info(op).kind == Kind::Reduction || op == Op::Matmul; }
inline std::string called(const Graph& graph, int64_t id) {
  return info(graph[id].op).name + (" %" + std::to_string(id));
}

// A kernel's values, as far as they are asked for, in the loops of a reduction or of an element.
struct LoopBuilder {
  const Graph& graph;
  const Group& members;
  int64_t reduction;  // -1: none
  Shape rows;
  bool flat = false;  // one loop, over the elements' numbers
  Kernel kernel = {};
  Shape inner = {};  // of what one row reduces
  Place row = {};
  Coordinate k = {};
  std::map<std::pair<int64_t, std::string>, int64_t> made = {};

  void begin() {
    const Axes none, &axes = reduction < 0 ? none : graph[reduction].axes;
    inner.assign(rows.size(), 1);
    for (const int64_t axis : axes) inner[axis] = operand_shape()[axis];
    if (reduction >= 0 && graph[reduction].op == Op::Matmul) inner[1] = operand_shape()[1];
    kernel.sizes = rows;
    kernel.sizes.push_back(count(inner));
    for (size_t d = 0; d < rows.size(); d++)
      row.along.push_back(rows[d] == 1 ? Coordinate{} : variable(d, kernel.sizes.size()));
    row.flat = flat;
    k = variable(rows.size(), kernel.sizes.size());
  }
  const Shape& operand_shape() const { return graph[graph[reduction].inputs[0]].shape; }

  // The operand's element that a row reduces at k.
  Place element() const {
    if (count(rows) == 1) return {{k}, true};
    Place at = spread(k, inner);
    for (size_t d = 0; d < rows.size(); d++)
      if (inner[d] == 1) at.along[d] = row.along[d];
    return at;
  }
  Place home(int64_t id) const {  // where a node is stored
    const Shape& shape = graph[id].shape;
    if (shape == rows || (flat && count(shape) == rows[0])) return row;
    if (reduction < 0 || graph[reduction].op == Op::Matmul || shape != operand_shape())
      throw Error(called(graph, id) + " is " + listed(shape) + ", a row's result " +
                  listed(rows));
    return element();
  }

  int64_t value(int64_t id, const Place& at) {
    const auto key = std::make_pair(id, name_of(at));
    if (const auto known = made.find(key); known != made.end()) return known->second;
    const Node& node = graph[id];
    if (info(node.op).kind == Kind::View)
      return made[key] = value(node.inputs[0], seen_through(graph, node, at));
    Value v{node.op, {}, id, at, 0};
    if (node.op != Op::Constant && !members.contains(id)) v.op = Op::Input;
    if (v.op == Op::Input)
      v.loops = at.loops();
    else if (reduces(node.op))
      v.operands = reduced(id, at), v.loops = k_of(kernel) - 1;
    else
      for (const int64_t input : node.inputs) v.operands.push_back(value(input, at));
    for (const int64_t operand : v.operands)
      if (!reduces(node.op)) v.loops |= kernel.values[operand].loops;
    kernel.values.push_back(v);
    return made[key] = std::ssize(kernel.values) - 1;
  }

  Ids reduced(int64_t id, const Place& at) {
    const Node &node = graph[id], &first = graph[reduction];
    if (node.op == Op::Matmul && first.op == node.op && id != reduction)
      throw Error("two products are two kernels");
    if ((node.op == Op::Matmul) != (first.op == Op::Matmul) || node.axes != first.axes ||
        graph[node.inputs[0]].shape != operand_shape() || node.shape != rows)
      throw Error(called(graph, id) + " has other loops than " + called(graph, reduction));
    if (name_of(at) != name_of(row))
      throw Error(called(graph, id) + " is needed at " + name_of(at) + " by row " +
                  name_of(row));
    if (node.op != Op::Matmul) return {value(node.inputs[0], element())};
    for (const int64_t input : node.inputs)
      if (members.contains(base_of(graph, input)))
        throw Error(called(graph, input) + " would be made again for each element of " +
                    called(graph, id));
    return {value(node.inputs[0], {{row.along[0], k}}),
            value(node.inputs[1], {{k, row.along[1]}})};
  }
};

inline Kernel made_by(LoopBuilder loops, const Ids& stored) {
  loops.begin();
  for (const int64_t id : stored) {
    const Place at = loops.home(id);
    const int64_t value = loops.value(id, at);
    loops.kernel.stores.push_back({value, id, at});
  }
  return loops.kernel;
}
// The kernel of these nodes. Throws Error where they have no loops in common.
inline Kernel loops_of(const Graph& graph, const Group& members, const Ids& stored) {
  const auto first = std::find_if(members.begin(), members.end(),
                                  [&](int64_t id) { return reduces(graph[id].op); });
  const int64_t reduction = first == members.end() ? -1 : *first;
  const Shape rows = graph[reduction < 0 ? stored[0] : reduction].shape;
  if (reduction < 0) {
    const Kernel kernel = made_by({graph, members, -1, {count(rows)}, true}, stored);
    const auto in_order = [](const Value& v) {
      return v.op != Op::Input || v.loops == 0 || (v.at.flat && v.at.along[0].is_variable());
    };
    if (std::ranges::all_of(kernel.values, in_order)) return kernel;
  }
  return made_by({graph, members, reduction, rows}, stored);
}

}  // namespace small
