// Which values does a forward part keep for its backward part? The fewest bytes from which the
// backward part can compute the rest again, which is a minimal cut (min_cut.h):
//
//   u = matmul x, w ; h = tanh u ; y = matmul h, v     the forward part
//   dh = matmul dy, v' ; .. 1 - h*h ..                 reads h
//     =>  keep u or h, whose bytes are equal; h, for it is nearer to its reader.
//   with e = cast u to f32 ; h = tanh e                =>  keep u, half as long
//         before the reader: e2 = cast u {again=1} ; h2 = tanh e2 {again=1}
//
// Forward is what the function's outputs need, backward is the rest: a rule of the graph alone.
// The network: a node is an edge of its bytes, from "can be computed" to "is there"; an operand
// leads to its reader; the source to what is not computed again (products, sorts), the backward
// part's reads to the sink. Inputs are there anyway and cost nothing; constants and views have no
// bytes of their own and are always made again.
//
// A budget in between obliges the cut to keep the last so many of the values that the backward
// part reads (they live shortest): as many as the bytes allow. The more obligations, the more
// bytes a minimal cut has, so bytes grow with the budget.
#include "tiny_compile/passes/partition.h"

#include <algorithm>
#include <set>

#include "tiny_compile/passes/min_cut.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

bool may_recompute(const Node& node) {
  switch (info(node.op).op_class) {
    case OpClass::Pointwise:
    case OpClass::View:
    case OpClass::Reduction:
    case OpClass::Indexed: return true;
    case OpClass::Source: return node.op != Op::input;
    default: return false;
  }
}

bool has_no_bytes(const Node& node) {
  return is_view(node.op) || node.op == Op::constant || node.op == Op::iota;
}

// The nodes that `roots` need, themselves included.
std::vector<bool> needed_by(const Graph& graph, const std::vector<int>& roots) {
  std::vector<bool> needed(graph.nodes.size());
  for (const int root : roots) needed[root] = true;
  for (int id = graph.size() - 1; id >= 0; id--) {
    if (!needed[id]) continue;
    for (const int input : graph[id].inputs) needed[input] = true;
  }
  return needed;
}

class Partition {
 public:
  Partition(const Graph& joint, size_t outputs)
      : joint_(joint), results_(joint.outputs.begin(), joint.outputs.begin() + outputs) {
    is_forward_ = needed_by(joint, results_);
    find_reads({joint.outputs.begin() + outputs, joint.outputs.end()});
  }

  bool is_forward(int id) const { return is_forward_[id]; }
  size_t cotangents() const {  // inputs: one for each result of floats
    return static_cast<size_t>(std::count_if(results_.begin(), results_.end(), [&](int id) {
      return is_float(joint_[id].type.dtype);
    }));
  }

  // Whether each node is kept.
  std::vector<bool> kept(double budget) const {
    const std::vector<int> all = kept_at_most();
    const double least = bytes(cut({})), most = bytes(cut(all));
    const double limit = least + budget * (most - least);
    size_t low = 0, high = all.size();  // the longest list of obligations within the limit
    while (low < high) {
      const size_t middle = (low + high + 1) / 2;
      if (bytes(cut({all.begin(), all.begin() + middle})) <= limit)
        low = middle;
      else
        high = middle - 1;
    }
    return cut({all.begin(), all.begin() + low});
  }

 private:
  void find_reads(const std::vector<int>& gradients) {
    auto read = [&](int id) {
      if (is_forward_[id]) reads_.insert(id);
    };
    for (const int output : gradients) read(output);
    for (int id = 0; id < joint_.size(); id++) {
      if (is_forward_[id]) continue;
      for (const int input : joint_[id].inputs) read(input);
    }
  }

  bool is_free(int id) const {
    return joint_[id].op == Op::input ||
           std::find(results_.begin(), results_.end(), id) != results_.end();
  }

  // What the backward part reads, through views, from the last to the first.
  std::vector<int> kept_at_most() const {
    std::set<int, std::greater<>> result;
    for (int id : reads_) {
      while (is_view(joint_[id].op)) id = joint_[id].inputs[0];
      if (!has_no_bytes(joint_[id]) && joint_[id].op != Op::input) result.insert(id);
    }
    return {result.begin(), result.end()};
  }

  // What is kept at the least cost, if these must be.
  std::vector<bool> cut(const std::vector<int>& obliged) const {
    const int source = 2 * joint_.size(), sink = source + 1;
    Network network{sink + 1, {}};
    auto edge = [&](int from, int to, int64_t capacity) {
      network.edges.push_back({from, to, capacity});
    };
    for (int id = 0; id < joint_.size(); id++) {
      if (!is_forward_[id]) continue;
      const Node& node = joint_[id];
      edge(2 * id, 2 * id + 1,
           has_no_bytes(node) ? kUncuttable
           : is_free(id)      ? 0
                              : bytes_of(node.type));
      if (!may_recompute(node)) edge(source, 2 * id, kUncuttable);
      for (const int input : node.inputs) edge(2 * input + 1, 2 * id, kUncuttable);
    }
    for (const int id : reads_) edge(2 * id + 1, sink, kUncuttable);
    for (const int id : obliged) {
      edge(source, 2 * id, kUncuttable);
      edge(2 * id + 1, sink, kUncuttable);
    }
    const std::vector<bool> computed = min_cut(network, source, sink);
    std::vector<bool> result(joint_.nodes.size());
    for (int id = 0; id < joint_.size(); id++)
      result[id] = is_forward_[id] && computed[2 * id] && !computed[2 * id + 1];
    return result;
  }

  double bytes(const std::vector<bool>& kept) const {
    double total = 0;
    for (int id = 0; id < joint_.size(); id++)
      if (kept[id] && !is_free(id)) total += static_cast<double>(bytes_of(joint_[id].type));
    return total;
  }

  const Graph& joint_;
  std::vector<int> results_;
  std::vector<bool> is_forward_;
  std::set<int> reads_;  // forward nodes that backward ones read
};

Node again(Node node) {
  if (may_be_again(node.op)) node.set(Key::again, {node.integer(Key::again, 0) + 1});
  return node;
}

// Nodes of the joint graph at the end of `out`; what is not there is computed again.
class Copy {
 public:
  Copy(const Graph& joint, Graph& out)
      : joint_(joint), out_(out), ids_(joint.nodes.size(), -1) {}

  int of(int id) {
    if (ids_[id] < 0) compute_again(id);
    return ids_[id];
  }
  void append(int id) {
    Node node = joint_[id];
    for (int& input : node.inputs) input = of(input);
    ids_[id] = out_.append(std::move(node));
  }
  void set(int id, int there) { ids_[id] = there; }

 private:
  // With all that it needs and is not there, operands first.
  void compute_again(int wanted) {
    std::set<int> missing;
    std::vector<int> open = {wanted};
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (ids_[id] >= 0 || !missing.insert(id).second) continue;
      open.insert(open.end(), joint_[id].inputs.begin(), joint_[id].inputs.end());
    }
    for (const int id : missing) {
      Node node = again(joint_[id]);
      for (int& input : node.inputs) input = ids_[input];
      ids_[id] = out_.append(std::move(node));
    }
  }

  const Graph& joint_;
  Graph& out_;
  std::vector<int> ids_;  // what stands for each node in `out`, or -1
};

}  // namespace

void check_budget(double budget) {
  if (!(budget >= 0 && budget <= 1))
    fail("memory_budget is ", budget, ": a share from 0 (compute again) to 1 (keep all)");
}

namespace {

// Inputs of `backward`: the function's, what is kept, the cotangents.
std::vector<int> given_to_backward(const Graph& joint, const std::vector<int>& kept,
                                   size_t own_inputs) {
  const std::vector<int> inputs = joint.inputs();
  std::vector<int> result(inputs.begin(), inputs.begin() + own_inputs);
  result.insert(result.end(), kept.begin(), kept.end());
  result.insert(result.end(), inputs.begin() + own_inputs, inputs.end());
  return result;
}

// The input that stands for a node of the joint graph: under its own name, or "kept7".
Node as_input(const Graph& joint, int id, std::set<std::string>& taken) {
  if (joint[id].op == Op::input) return joint[id];
  Node input;
  input.type = joint[id].type;
  input.name = str("kept", id);
  while (!taken.insert(input.name).second) input.name += "_";
  return input;
}

// Without those of the first `own_inputs` inputs that nothing reads.
void drop_unread_inputs(Halves& halves, size_t own_inputs) {
  const std::vector<bool> needed = needed_by(halves.backward, halves.backward.outputs);
  for (size_t k = 0; k < own_inputs; k++)
    if (needed[k]) halves.inputs.push_back(static_cast<int>(k));
  int id = 0;
  halves.backward = rebuild(halves.backward, [&](Graph& out, Node node) {
    const bool stays = needed[id] || id >= static_cast<int>(own_inputs);
    id++;
    return stays ? out.append(std::move(node)) : -1;
  });
}

}  // namespace

Graph recompute(const Graph& given, size_t outputs, double budget) {
  check_budget(budget);
  if (budget == 1) return given;
  const Graph joint = inline_calls(given);
  const Partition partition(joint, outputs);
  const std::vector<bool> kept = partition.kept(budget);
  Graph result;
  result.name = joint.name;
  Copy forward(joint, result), backward(joint, result);
  for (int id = 0; id < joint.size(); id++) {
    const bool is_input = joint[id].op == Op::input;
    if (is_input || partition.is_forward(id)) {
      forward.append(id);
      if (is_input || kept[id]) backward.set(id, forward.of(id));
    } else {
      backward.append(id);
    }
  }
  for (size_t k = 0; k < joint.outputs.size(); k++)
    result.outputs.push_back((k < outputs ? forward : backward).of(joint.outputs[k]));
  return dce(result);
}

Halves split(const Graph& given, size_t outputs, double budget) {
  check_budget(budget);
  const Graph joint = inline_calls(given);
  const Partition partition(joint, outputs);
  const std::vector<bool> is_kept = partition.kept(budget);
  const size_t own = joint.inputs().size() - partition.cotangents();
  Halves halves;
  halves.forward.name = joint.name;
  halves.backward.name = joint.name + "_backward";
  Copy forward(joint, halves.forward), backward(joint, halves.backward);
  std::vector<int> kept;
  for (int id = 0; id < joint.size(); id++) {
    const bool is_input = joint[id].op == Op::input;
    if (is_kept[id] && !is_input) kept.push_back(id);
  }
  const std::vector<int> operands = given_to_backward(joint, kept, own);
  for (size_t k = 0; k < own; k++) forward.append(operands[k]);
  std::set<std::string> taken;
  for (const int input : joint.inputs()) taken.insert(joint[input].name);
  for (const int id : operands)
    backward.set(id, halves.backward.append(as_input(joint, id, taken)));
  for (int id = 0; id < joint.size(); id++) {
    if (joint[id].op == Op::input) continue;
    (partition.is_forward(id) ? forward : backward).append(id);
  }
  for (size_t k = 0; k < joint.outputs.size(); k++) {
    Graph& half = k < outputs ? halves.forward : halves.backward;
    half.outputs.push_back((k < outputs ? forward : backward).of(joint.outputs[k]));
  }
  for (const int id : kept) halves.forward.outputs.push_back(forward.of(id));
  drop_unread_inputs(halves, own);
  return halves;
}

Graph computed_again(Graph graph) {
  for (Node& node : graph.nodes) {
    node = again(std::move(node));
    if (!node.graphs.empty()) node.graphs[0] = computed_again(std::move(node.graphs[0]));
  }
  return graph;
}

}  // namespace tiny_compile
