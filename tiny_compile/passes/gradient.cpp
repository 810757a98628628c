// How does a graph of a function become one of its gradient? Its nodes from the last to the
// first: each passes the cotangent of its result on to its operands (derivatives.h), and what a
// value gets from its readers is added up.
//
//   graph f(%0 x) { %1 = sin %0 ; %2 = mul %1, %0 ; return %2 }, with respect to x
//     =>  graph f(%0 x, %1 d0) {
//           %2 = sin %0 ; %3 = mul %2, %0                             the function
//           %4 = mul %1, %0 ; %5 = mul %1, %2                         mul
//           %6 = cos %0 ; %7 = mul %4, %6 ; %8 = add %5, %7           sin
//           return %3, %8 }
#include "tiny_compile/passes/gradient.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "tiny_compile/passes/derivatives.h"
#include "tiny_compile/passes/partition.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/replay.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {
namespace {

// Which nodes depend on these inputs by way of floats.
std::vector<bool> depending(const Graph& graph, const std::vector<int>& inputs) {
  std::vector<bool> depends(graph.nodes.size());
  for (const int input : inputs) depends[input] = true;
  for (int id = 0; id < graph.size(); id++) {
    const Node& node = graph[id];
    if (!is_float(node.type.dtype)) continue;
    for (const int input : node.inputs) depends[id] = depends[id] || depends[input];
  }
  return depends;
}

bool is_call(const Node& node) { return node.op == Op::call; }

// What a slice has read, elements first .. end - 1 of an axis, and what they get from it.
struct Part {
  int64_t first = 0, end = 0;
  Tensor g;
};

// A slice of neighbours, all of whose axis is known.
bool is_part(const Node& node, const Tensor& x) {
  if (node.op != Op::slice || node.integer(Key::step, 1) != 1) return false;
  const int64_t axis = node.integer(Key::axis, 0);
  return node.attr(Key::start).is_constant() && x.size(axis).is_number() &&
         node.type.shape[static_cast<size_t>(axis)].is_constant();
}

// a @ b, of matrices.
struct Product {
  Tensor a, b;
};

// Products of one shape, added up. Those of a recurrence, whose steps share a matrix, are thin: beside
// each other they are one, where that copies less than the sums would go through.
Tensor sum_of(const std::vector<Product>& products) {
  const int64_t m = products[0].a.size(0), n = products[0].b.size(1);
  const int64_t more = static_cast<int64_t>(products.size()) - 1;
  int64_t depth = 0;
  std::vector<Tensor> left, right;
  for (const Product& product : products) {
    left.push_back(product.a);
    right.push_back(product.b);
    depth += product.a.size(1);
  }
  if (more > 0 && depth * (m + n) < 2 * more * m * n)
    return matmul(concat(left, 1), concat(right, 0));
  Tensor sum = matmul(left[0], right[0]);
  for (size_t k = 1; k < products.size(); k++) sum = sum + matmul(left[k], right[k]);
  return sum;
}

bool has_numbers(const Type& type) {
  return std::all_of(type.shape.begin(), type.shape.end(),
                     [](const Expr& size) { return size.is_constant(); });
}

bool is_matrix_product(const Node& node) {
  return node.op == Op::matmul && node.type.rank() == 2;
}
bool turns_matrix(const Node& node) {
  return node.op == Op::permute && node.type.rank() == 2 && node.axes() == std::vector{1, 0};
}

// Matrices that several products of matrices multiply by, as they are or transposed.
std::vector<bool> shared_matrices(const Graph& graph) {
  std::vector<int> uses(graph.nodes.size());
  for (int id = graph.size() - 1; id >= 0; id--) {
    const Node& node = graph[id];
    if (is_matrix_product(node)) {
      for (const int input : node.inputs) uses[input] += has_numbers(graph[input].type);
    } else if (turns_matrix(node)) {
      uses[node.inputs[0]] += uses[id];
    }
  }
  std::vector<bool> shared(uses.size());
  for (int id = 0; id < graph.size(); id++)
    shared[id] = uses[id] > 1 || (turns_matrix(graph[id]) && shared[graph[id].inputs[0]]);
  return shared;
}

// What a value has got from its readers so far. Slices of one axis that do not overlap, as the steps
// of a recurrence read them, are put side by side; all else is added up. One by one, each among
// zeros, n of them would make n sums of the whole.
class Cotangent {
 public:
  bool defined() const { return sum_.defined() || !parts_.empty() || !products_.empty(); }
  bool is_of_products() const { return !sum_.defined() && parts_.empty(); }
  const std::vector<Product>& products() const { return products_; }

  void add(const Tensor& g) { sum_ = sum_.defined() ? sum_ + g : g; }

  void add_product(const Tensor& a, const Tensor& b) { products_.push_back({a, b}); }

  // Of a slice of x, [.., first .. , ..] along `axis`.
  void add_slice(const Tensor& x, int64_t axis, int64_t first, const Tensor& g) {
    const auto next = std::find_if(parts_.begin(), parts_.end(),
                                   [&](const Part& part) { return part.first > first; });
    const int64_t end = first + g.size(axis);
    const bool beside =
        parts_.empty() || (axis == axis_ && (next == parts_.end() || end <= next->first) &&
                           (next == parts_.begin() || std::prev(next)->end <= first));
    if (!beside) return add(padded(g, axis, first, x.size(axis) - end));
    axis_ = axis;
    size_ = x.size(axis);
    parts_.insert(next, {first, end, g});
  }

  // All of it as one tensor.
  const Tensor& value() {
    std::vector<Tensor> parts;
    for (size_t k = 0; k < parts_.size(); k++) {
      const int64_t low = parts_[k].first - (k > 0 ? parts_[k - 1].end : 0);
      const int64_t high = k + 1 == parts_.size() ? size_ - parts_[k].end : 0;
      parts.push_back(padded(parts_[k].g, axis_, low, high));
    }
    if (!parts.empty()) add(parts.size() > 1 ? concat(parts, axis_) : parts[0]);
    parts_.clear();
    if (!products_.empty()) add(sum_of(products_));
    products_.clear();
    return sum_;
  }

 private:
  Tensor sum_;
  int64_t axis_ = 0, size_ = 0;
  std::vector<Part> parts_;  // in order
  std::vector<Product> products_;
};

class Sweep {
 public:
  Sweep(const Graph& graph, const std::vector<int>& inputs, std::vector<Tensor> values)
      : graph_(graph),
        depends_(depending(graph, inputs)),
        shared_(shared_matrices(graph)),
        values_(std::move(values)),
        cotangents_(graph.nodes.size()) {}

  void add(int id, const Tensor& cotangent) {
    if (depends_[id]) cotangents_[id].add(cotangent);
  }

  void run() {
    for (int id = graph_.size() - 1; id >= 0; id--) {
      if (graph_[id].op == Op::custom_vjp) {
        pass_on_custom(id);
      } else if (graph_[id].op == Op::checkpoint) {
        pass_on_checkpoint(id);
      } else if (cotangents_[id].defined() && graph_[id].op != Op::input) {
        pass_on(id);
      }
    }
  }

  Tensor cotangent(int id) {
    return cotangents_[id].defined() ? cotangents_[id].value() : zeros_like(values_[id]);
  }

 private:
  void pass_on(int id) {
    const Node& node = graph_[id];
    if (node.op == Op::item) {
      of_items_[node.inputs[0]][node.integer(Key::index, 0)].add(cotangents_[id].value());
      return;
    }
    const Scope scope(node.where);
    const std::vector<Tensor> operands = operands_of(node);
    if (turns_matrix(node) && cotangents_[id].is_of_products()) {
      for (const auto& [a, b] : cotangents_[id].products())
        cotangents_[node.inputs[0]].add_product(transpose(b, 0, 1), transpose(a, 0, 1));
      return;
    }
    const Tensor& g = cotangents_[id].value();
    if (is_part(node, operands[0])) {
      if (depends_[node.inputs[0]])
        cotangents_[node.inputs[0]].add_slice(operands[0], node.integer(Key::axis, 0),
                                              node.integer(Key::start, 0), g);
      return;
    }
    std::vector<bool> wanted;
    for (const int input : node.inputs) wanted.push_back(depends_[input]);
    if (is_matrix_product(node)) {
      for (size_t k = 0; k < 2; k++) {
        if (!shared_[node.inputs[k]] || !wanted[k]) continue;
        const Tensor other = transpose(operands[1 - k], 0, 1);
        cotangents_[node.inputs[k]].add_product(k == 0 ? g : other, k == 0 ? other : g);
        wanted[k] = false;
      }
    }
    const std::vector<Tensor> passed = pull_back({node, operands, values_[id], g}, wanted);
    for (size_t k = 0; k < passed.size(); k++) {
      if (passed[k].defined() && wanted[k]) add(node.inputs[k], passed[k]);
    }
  }

  // Computes the inside again, from the operands, and goes through it.
  void pass_on_checkpoint(int id) {
    const Node& node = graph_[id];
    if (!of_items_.count(id)) return;
    const Graph inside = inline_calls(computed_again(node.graphs[0]), is_call);
    const std::vector<int> inputs = inside.inputs();
    std::vector<int> wanted;
    for (size_t k = 0; k < inputs.size(); k++)
      if (depends_[node.inputs[k]] && is_float(inside[inputs[k]].type.dtype))
        wanted.push_back(inputs[k]);
    Sweep sweep(inside, wanted, replay_all(inside, operands_of(node)));
    std::set<int> taken_over;  // what they have got is added to inside, in the order without it
    for (size_t k = 0; k < inputs.size(); k++)
      if (taken_over.insert(node.inputs[k]).second)
        sweep.cotangents_[inputs[k]] = std::exchange(cotangents_[node.inputs[k]], Cotangent());
    for (auto& [number, cotangent] : of_items_[id])
      sweep.add(inside.outputs[static_cast<size_t>(number)], cotangent.value());
    sweep.run();
    for (size_t k = 0; k < inputs.size(); k++)
      if (sweep.cotangents_[inputs[k]].defined())
        add(node.inputs[k], sweep.cotangents_[inputs[k]].value());
  }

  // By the node's own second graph.
  void pass_on_custom(int id) {
    const Node& node = graph_[id];
    if (!of_items_.count(id)) return;
    const Scope scope(node.where);
    std::vector<Tensor> given = operands_of(node), cotangents;
    for (size_t k = 0; k < node.type.items.size(); k++) {
      Node item;
      item.op = Op::item;
      item.set(Key::index, {static_cast<int64_t>(k)});
      given.push_back(apply(std::move(item), {values_[id]}, node.where));
      if (!is_float(node.type.items[k].dtype)) continue;
      const auto known = of_items_[id].find(static_cast<int64_t>(k));
      cotangents.push_back(known == of_items_[id].end() ? zeros_like(given.back())
                                                        : known->second.value());
    }
    given.insert(given.end(), cotangents.begin(), cotangents.end());
    const std::vector<Tensor> passed = replay(node.graphs[1], given);
    size_t next = 0;
    for (const int input : node.inputs) {
      if (is_float(graph_[input].type.dtype)) add(input, passed[next++]);
    }
  }

  std::vector<Tensor> operands_of(const Node& node) const {
    std::vector<Tensor> operands;
    for (const int input : node.inputs) operands.push_back(values_[input]);
    return operands;
  }

  const Graph& graph_;
  std::vector<bool> depends_, shared_;
  std::vector<Tensor> values_;  // of each node
  std::vector<Cotangent> cotangents_;
  std::map<int, std::map<int64_t, Cotangent>> of_items_;  // of the results of these nodes
};

// The first inputs named and laid out as the function's, the others d0, d1, ..: dd0 where d0 is
// taken already.
Graph with_inputs_of(const Graph& function, Graph graph) {
  std::set<std::string> taken;
  std::vector<int> ids = graph.inputs();
  const std::vector<int> inputs = function.inputs();
  for (size_t k = 0; k < inputs.size(); k++) {
    graph.nodes[ids[k]].name = function[inputs[k]].name;
    graph.nodes[ids[k]].attrs = function[inputs[k]].attrs;
    taken.insert(function[inputs[k]].name);
  }
  for (size_t k = inputs.size(); k < ids.size(); k++) {
    std::string name = str("d", k - inputs.size());
    while (!taken.insert(name).second) name = "d" + name;
    graph.nodes[ids[k]].name = name;
  }
  return graph;
}

}  // namespace

Graph vjp(const Graph& called, const std::vector<int>& wrt) {
  const Graph graph = inline_calls(called, is_call);
  const std::vector<int> inputs = graph.inputs();
  std::vector<Type> types;
  for (const int input : inputs) types.push_back(graph[input].type);
  for (const int output : graph.outputs) {
    if (is_float(graph[output].type.dtype)) types.push_back(graph[output].type);
  }
  std::vector<int> sources;
  for (const int number : wrt) {
    const Node& input = graph[inputs[static_cast<size_t>(number)]];
    if (!is_float(input.type.dtype))
      fail("input ", input.name, " of graph ", graph.name, " is ", input.type.str(),
           ": only floats have gradients");
    sources.push_back(inputs[static_cast<size_t>(number)]);
  }
  const TensorFunction both = [&](std::span<const Tensor> given) {
    const std::vector<Tensor> values = replay_all(graph, given.first(inputs.size()));
    Sweep sweep(graph, sources, values);
    std::vector<Tensor> outputs;
    size_t next = inputs.size();
    for (const int output : graph.outputs) {
      outputs.push_back(values[output]);
      if (is_float(graph[output].type.dtype)) sweep.add(output, given[next++]);
    }
    sweep.run();
    for (const int source : sources) outputs.push_back(sweep.cotangent(source));
    return outputs;
  };
  return with_inputs_of(graph, dce(trace_symbolic(both, types, graph.name).graph));
}

}  // namespace tiny_compile
