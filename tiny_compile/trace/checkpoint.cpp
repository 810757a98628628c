// How does a trace say that a region is to be computed again? With a node that holds its graph:
//
//   tanh(x) * x  =>  %1: (f32[4]) = checkpoint %0 { graph checkpoint(%0 x0: f32[4]) { .. } }
//                    %2: f32[4] = item %1 {index=0}
//
// What the function captures becomes an operand. Lowered, it is its inside.
#include "tiny_compile/trace/checkpoint.h"

#include "tiny_compile/trace/custom_vjp.h"

namespace tiny_compile {

std::vector<Tensor> checkpointed(const TensorFunction& function, const std::vector<Tensor>& x) {
  if (!is_differentiated()) return function(x);
  std::vector<Type> types;
  for (const Tensor& operand : x) types.push_back({operand.dtype(), operand.sizes().exprs()});
  Traced traced = trace_symbolic(function, types, "checkpoint");
  const size_t results = traced.graph.outputs.size();
  if (results == 0) fail_at(current_place({}), "checkpoint: the function returns no tensor");
  std::vector<Tensor> operands = x;
  for (const Captured& captured : traced.captured) operands.push_back(captured.tensor);
  Node node;
  node.op = Op::checkpoint;
  node.graphs = {std::move(traced.graph)};
  const Tensor tuple = apply(std::move(node), operands, {});
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
