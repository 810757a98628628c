// Which sums of exponentials are one number? Softmax's and log_softmax's of the same rows, where these are no
// longer than a chunk: then sum_exp has one maximum too.
//
//   %5 = sum(exp(%0 - m)) ; %8 = sum_exp %0    =>   %5 alone, m the largest of %0, clamped to finite
//
// Of the two the sum stays: its exponentials are what softmax divides. (An entropy computes one exponential per
// element instead of two, a Kullback-Leibler divergence two instead of three.)
#include <algorithm>
#include <limits>

#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

bool same_axes(const Node& a, const Node& b) { return a.list(Key::axes) == b.list(Key::axes); }

bool is_again(const Node& node) { return node.integer(Key::again, 0) != 0; }  // a checkpoint's

// The other operand where one is this constant, or -1.
int beside(const Graph& graph, const Node& node, double value) {
  for (const int k : {0, 1}) {
    const std::optional<Literal> literal = constant_value(graph, node.inputs[k]);
    if (literal && literal->as_double() == value) return node.inputs[1 - k];
  }
  return -1;
}

// x of minimum(maximum(x, least), most), the finite numbers' limits; or -1.
int clamped(const Graph& graph, const Node& node) {
  const double most = node.type.dtype == DType::f64 ? std::numeric_limits<double>::max()
                                                    : std::numeric_limits<float>::max();
  if (node.op != Op::minimum) return -1;
  const int inner = beside(graph, node, most);
  if (inner < 0 || graph[inner].op != Op::maximum) return -1;
  return beside(graph, graph[inner], -most);
}

// x of sum(exp(x - m)) over axes of at most a chunk, m the largest over the same axes; or -1.
int softmax_operand(const Graph& graph, const Node& sum) {
  if (sum.op != Op::sum || is_again(sum) || graph[sum.inputs[0]].op != Op::exp) return -1;
  const Node& difference = graph[graph[sum.inputs[0]].inputs[0]];
  if (difference.op != Op::sub || graph[difference.inputs[1]].op != Op::expand) return -1;
  const int x = difference.inputs[0],
            most = clamped(graph, graph[graph[difference.inputs[1]].inputs[0]]);
  if (most < 0 || graph[most].op != Op::max || graph[most].inputs[0] != x) return -1;
  const bool is_same = same_axes(graph[most], sum) && graph[most].integer(Key::keepdim, 0) == 1;
  Expr count = 1;
  for (const Expr& axis : sum.list(Key::axes))
    count = count * graph[x].type.shape[static_cast<size_t>(axis.constant())];
  return is_same && count.bounds().high <= kChunk ? x : -1;
}

// The first sum in the graph that is this sum_exp, or -1.
int same_sum(const Graph& graph, const Node& sum_exp) {
  for (int id = 0; id < graph.size(); id++) {
    if (softmax_operand(graph, graph[id]) == sum_exp.inputs[0] && same_axes(graph[id], sum_exp))
      return id;
  }
  return -1;
}

// A node as it stands there, with all that it needs and that is not in the new graph yet.
int copy_of(const Graph& graph, int id, Graph& out, std::vector<int>& ids) {
  if (ids[id] >= 0) return ids[id];
  Node node = graph[id];
  for (int& input : node.inputs) input = copy_of(graph, input, out, ids);
  return ids[id] = out.append(std::move(node));
}

int in_shape_of(Graph& out, int id, const Node& node) {
  if (out[id].type == node.type) return id;
  Node reshape;
  reshape.op = Op::reshape;
  reshape.inputs = {id};
  reshape.type = node.type;
  reshape.where = node.where;
  return out.append(std::move(reshape));
}

}  // namespace

Graph merge_equal(const Graph& all) {
  const Graph merged = cse(all);  // one x, though it is cast twice
  const auto is_asked = [](const Node& node) {
    return node.op == Op::sum_exp && !is_again(node);
  };
  if (std::none_of(merged.nodes.begin(), merged.nodes.end(), is_asked)) return merged;
  const Graph graph = dce(merged);
  std::vector<int> sums;
  for (const Node& node : graph.nodes)
    sums.push_back(is_asked(node) ? same_sum(graph, node) : -1);
  if (std::all_of(sums.begin(), sums.end(), [](int sum) { return sum < 0; })) return merged;
  Graph out;
  out.name = graph.name;
  std::vector<int> ids(graph.nodes.size(), -1);
  for (int id = 0; id < graph.size(); id++) {
    ids[id] = sums[id] >= 0 ? in_shape_of(out, copy_of(graph, sums[id], out, ids), graph[id])
                            : copy_of(graph, id, out, ids);
  }
  for (const int output : graph.outputs) out.outputs.push_back(ids[output]);
  return cse(out);  // what both sums went into is equal now
}

}  // namespace tiny_compile
