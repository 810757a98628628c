// When is the derivative of a function not that of its ops? Where a formula is better (of
// log_softmax, whose maximum cancels), where its ops have several (relu is 0 at 0), or where the
// user says so. Such a call is one node that holds both graphs:
//
//   %1: (f32[4]) = custom_vjp %0 {
//     graph relu(%0 x0: f32[4]) { ... }
//     graph relu_backward(%0 x0: f32[4], %1 y0: f32[4], %2 g0: f32[4]) { ... }
//   }
#include "tiny_compile/trace/custom_vjp.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tiny_compile {
namespace {

thread_local int differentiated = 0;

// Where the first op stands that reads one of the inputs behind the first `given`.
Location first_use_beyond(const Graph& graph, size_t given) {
  const std::vector<int> inputs = graph.inputs();
  const std::set<int> others(inputs.begin() + static_cast<std::ptrdiff_t>(given), inputs.end());
  for (const Node& node : graph.nodes) {
    if (std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](int input) { return others.count(input) > 0; }))
      return node.where;
  }
  return {};
}

Graph graph_of(const TensorFunction& function, const std::vector<Type>& inputs,
               const std::string& name) {
  const Differentiated inside(false);
  Traced traced = trace_symbolic(function, inputs, name);
  if (!traced.captured.empty())
    fail_at(first_use_beyond(traced.graph, inputs.size()),
            str(name,
                ": a function with a derivative of its own uses a tensor that is none of its "
                "arguments: pass it as one"));
  return std::move(traced.graph);
}

}  // namespace

int differentiations() { return differentiated; }

Differentiated::Differentiated(bool now)
    : before_(std::exchange(differentiated, now ? differentiated + 1 : 0)) {}
Differentiated::~Differentiated() { differentiated = before_; }

std::vector<Tensor> with_derivative(const std::string& name, const TensorFunction& function,
                                    const Backward& backward, const std::vector<Tensor>& x) {
  const auto has_gradient = [](const Tensor& operand) { return is_float(operand.dtype()); };
  if (!differentiated || std::none_of(x.begin(), x.end(), has_gradient)) return function(x);
  Node node;
  node.op = Op::custom_vjp;
  std::vector<Type> given, floats;
  for (const Tensor& operand : x) given.push_back({operand.dtype(), operand.sizes().exprs()});
  node.graphs.push_back(graph_of(function, given, name));
  for (const int output : node.graphs[0].outputs) {
    const Type& type = node.graphs[0][output].type;
    given.push_back(type);
    if (is_float(type.dtype)) floats.push_back(type);
  }
  const size_t results = given.size() - x.size();
  given.insert(given.end(), floats.begin(), floats.end());
  const TensorFunction flat = [&](std::span<const Tensor> all) {
    return backward(all.first(x.size()), all.subspan(x.size(), results),
                    all.last(floats.size()));
  };
  node.graphs.push_back(graph_of(flat, given, name + "_backward"));
  const Tensor tuple = apply(std::move(node), x, {});
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < results; k++) {
    Node item;
    item.op = Op::item;
    item.set(Key::index, {static_cast<int64_t>(k)});
    outputs.push_back(apply(std::move(item), {tuple}, {}));
  }
  return outputs;
}

}  // namespace tiny_compile
