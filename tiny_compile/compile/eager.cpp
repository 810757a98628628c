// How does an op on a GPU's tensor run outside compile? As a graph of that one op, compiled the
// first time it meets these dtypes, shapes and strides; views only get other strides. The CPU's
// ops run in the interpreter and do not come here.
#include <list>
#include <map>
#include <mutex>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostOps = 1024;  // compiled ones that are kept; then all are forgotten

Graph graph_of(const Node& node, std::span<const Tensor> operands) {
  Graph graph =
      trace([&](std::span<const Tensor> x) { return std::vector{apply(node, x, node.where)}; },
            operands, info(node.op).name)
          .graph;
  for (Node& each : graph.nodes) each.where = {};
  return graph;
}

std::shared_ptr<const Built> built_for(const Graph& graph, Device device) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, std::shared_ptr<const Built>>;
  const std::string key = str(device.index, " ", print(graph));
  const std::lock_guard lock(mutex);
  if (known->size() >= kMostOps) known->clear();
  std::shared_ptr<const Built>& built = (*known)[key];
  if (!built) {
    const Staged staged = run_pipeline({}, graph, false, Target::Cuda);
    built = std::make_shared<Built>(build(staged.program, staged.source, device.index));
  }
  return built;
}

}  // namespace

Tensor apply_on_device(const Node& node, std::span<const Tensor> operands, Device device) {
  std::vector<Tensor> inputs;
  for (const Tensor& operand : operands) inputs.push_back(copy_to(operand, device));
  if (info(node.op).op_class == OpClass::View) {
    if (!shares_storage(node, inputs[0])) inputs[0] = row_major_copy(inputs[0]);
    return evaluate(node, inputs);
  }
  for (Tensor& input : inputs) {
    if (has_reversed_axes(input)) input = row_major_copy(input);
  }
  return built_for(graph_of(node, inputs), device)->run(inputs)[0];
}

}  // namespace tiny_compile
