// How does a gradient come into a trace? The function is traced by itself, the graph made one of
// its gradient too (passes/gradient.h), and that graph's ops are called in the trace around.
//
//   value_and_grad(f)(x)  =>  trace f: (%0 x) -> loss;  vjp: (%0 x, %1 d0) -> loss, dx;
//                             its ops on x and 1
//
// A tangent: vjp is linear in its cotangent d; pulling a tangent back through that map, from dx to
// d, pushes it forward through f.
#include "tiny_compile/compile/grad.h"

#include <numeric>

#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/passes/partition.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/custom_vjp.h"
#include "tiny_compile/trace/replay.h"

namespace tiny_compile::detail {
namespace {

std::vector<int> numbers(size_t first, size_t count) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), static_cast<int>(first));
  return result;
}

void check_floats(const std::vector<Tensor>& inputs, size_t first, size_t count) {
  for (size_t k = first; k < first + count; k++) {
    const Tensor& x = inputs[k];
    if (is_float(x.dtype())) continue;
    fail_at(current_place({}), str("grad: tensor ", k - first, " of the argument is ",
                                   x.dtype(), "[", join(x.sizes(), ","),
                                   "], and only floats have gradients: pass it as another "
                                   "argument"));
  }
}

void check_loss(const Graph& graph) {
  if (graph.outputs.empty()) fail("grad: the function returns no tensor");
  const Node& loss = graph[graph.outputs[0]];
  const bool one = std::all_of(loss.type.shape.begin(), loss.type.shape.end(),
                               [](const Expr& size) { return size.is_constant(1); });
  if (!one || !is_float(loss.type.dtype))
    fail_at(loss.where, str("grad: the loss is ", loss.type.str(),
                            ", not one float: take its sum() or mean()"));
}

// Custom derivatives have done their duty, unless this gradient is differentiated in its turn.
Graph kept(const Graph& graph) { return is_differentiated() ? graph : inline_calls(graph); }

}  // namespace

Call call(const TensorFunction& function, const std::vector<Tensor>& inputs) {
  const Differentiated inside(true);
  Traced traced = trace(function, inputs, "function");
  Call result{std::move(traced.graph), inputs};
  for (const Captured& captured : traced.captured) result.operands.push_back(captured.tensor);
  return result;
}

std::vector<Tensor> outputs_and_gradients(const TensorFunction& function,
                                          const std::vector<Tensor>& inputs, size_t first,
                                          size_t count) {
  check_floats(inputs, first, count);
  auto [graph, operands] = call(function, inputs);
  check_loss(graph);
  const Graph joint = vjp(graph, numbers(first, count));
  const Graph both = is_differentiated() ? joint
                                         : recompute(inline_calls(joint), graph.outputs.size(),
                                                     memory_budget());
  for (size_t k = 0; k < graph.outputs.size(); k++) {
    const Type& type = graph[graph.outputs[k]].type;
    if (!is_float(type.dtype)) continue;
    operands.push_back(full(SizeList(type.shape), k == 0 ? 1 : 0, type.dtype));
  }
  return replay(both, operands);
}

std::vector<Tensor> outputs_and_tangents(const TensorFunction& function,
                                         const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>& tangents) {
  check_floats(inputs, 0, inputs.size());
  auto [graph, operands] = call(function, inputs);
  const size_t captured = operands.size() - inputs.size(), outputs = graph.outputs.size();
  // (x, captured, d) -> (y, dx); d are the inputs that the second vjp is with respect to.
  const Graph back = vjp(graph, numbers(0, inputs.size()));
  Graph pulled = back;
  pulled.outputs.erase(pulled.outputs.begin(), pulled.outputs.begin() + outputs);
  const size_t cotangents = back.inputs().size() - inputs.size() - captured;
  Graph forward = vjp(pulled, numbers(inputs.size() + captured, cotangents));
  forward.outputs.erase(forward.outputs.begin(), forward.outputs.begin() + inputs.size());
  const std::vector<Tensor> values = replay(kept(graph), operands);
  for (const int output : graph.outputs) {
    const Type& type = graph[output].type;
    if (is_float(type.dtype)) operands.push_back(ones(SizeList(type.shape), type.dtype));
  }
  for (size_t k = 0; k < inputs.size(); k++) operands.push_back(tangents[k]);
  const std::vector<Tensor> pushed = replay(kept(dce(forward)), operands);
  std::vector<Tensor> result = values;
  size_t next = 0;
  for (const Tensor& value : values)
    result.push_back(is_float(value.dtype()) ? pushed[next++] : zeros_like(value));
  return result;
}

Tensor stacked(const std::vector<Tensor>& rows, const Tensor& x) {
  SizeList shape = x.sizes();
  for (const Size& size : x.sizes()) shape.push_back(size);
  return rows.empty() ? zeros(shape, x.dtype()) : reshape(stack(rows, 0), shape);
}

}  // namespace tiny_compile::detail
