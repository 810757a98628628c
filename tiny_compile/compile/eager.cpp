// How does an op on a GPU's tensor run outside compile? As a graph of that one op, compiled the
// first time it meets these dtypes, shapes and strides; views only get other strides. The CPU's
// ops run in the interpreter and do not come here.
#include <mutex>
#include <unordered_map>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostOps = 1024;  // compiled ones that are kept; then all are forgotten

Node flip_of(const Tensor& tensor) {
  std::vector<Expr> axes;
  for (int axis = 0; axis < tensor.rank(); axis++) {
    if (tensor.strides()[axis] < 0) axes.push_back(axis);
  }
  Node node;
  node.op = Op::flip;
  node.set(Key::axes, axes);
  return node;
}

// Kernels are made for strides that are not negative: a reversed operand is the flip of one.
Graph graph_of(const Node& node, std::span<const Tensor> operands,
               std::span<const Tensor> inputs) {
  auto function = [&](std::span<const Tensor> traced) {
    std::vector<Tensor> x(traced.begin(), traced.end());
    for (size_t k = 0; k < x.size(); k++) {
      if (has_reversed_axes(operands[k]))
        x[k] = apply(flip_of(operands[k]), {x[k]}, node.where);
    }
    return std::vector{apply(node, x, node.where)};
  };
  Graph graph = trace(function, inputs, info(node.op).name).graph;
  for (Node& each : graph.nodes) each.where = {};
  return graph;
}

// Compiled ops are known by the value of their graphs.
struct Compiled {
  int device = 0;
  Graph graph;
  bool operator==(const Compiled& other) const = default;
};

struct CompiledHash {
  size_t operator()(const Compiled& key) const {
    size_t hash = static_cast<size_t>(key.device);
    auto mix = [&](size_t value) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15ull + (hash >> 29);
    };
    for (const Node& node : key.graph.nodes) {
      mix(static_cast<size_t>(node.op));
      mix(static_cast<size_t>(node.type.dtype));
      for (const Expr& size : node.type.shape) mix(size.hash());
      for (const Attr& attr : node.attrs) {
        for (const Expr& value : attr.values) mix(value.hash());
      }
    }
    return hash;
  }
};

std::shared_ptr<const Built> built_for(const Graph& graph, Device device) {
  static std::mutex mutex;
  static auto* known =
      new std::unordered_map<Compiled, std::shared_ptr<const Built>, CompiledHash>;
  const std::lock_guard lock(mutex);
  if (known->size() >= kMostOps) known->clear();
  std::shared_ptr<const Built>& built = (*known)[{device.index, graph}];
  if (!built) {
    const Staged staged = run_pipeline({}, graph, false, machine_on(device));
    built = std::make_shared<Built>(build(staged.program, staged.source, device.index));
  }
  return built;
}

}  // namespace

Tensor apply_on_device(const Node& node, std::span<const Tensor> operands, Device device) {
  std::vector<Tensor> there;
  for (const Tensor& operand : operands) there.push_back(copy_to(operand, device));
  if (info(node.op).op_class == OpClass::View) {
    if (!shares_storage(node, there[0])) there[0] = row_major_copy(there[0]);
    return evaluate(node, there);
  }
  std::vector<Tensor> inputs = there;
  for (Tensor& input : inputs) {
    if (has_reversed_axes(input)) input = apply(flip_of(input), {input}, node.where);
  }
  return built_for(graph_of(node, there, inputs), device)->run(inputs)[0];
}

}  // namespace tiny_compile
