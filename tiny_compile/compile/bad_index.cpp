// Which index was out of range? A kernel that meets one can do no more than note it, and to
// carry its value and place along would cost every call; so when the call has failed, the
// interpreter computes what the graph's indices are, and nothing else:
//
//   %2 = gather %0, %1 {axis=0}  # mlp.cpp:14     =>   the values of %1, against %0's axis 0
#include "tiny_compile/compile/bad_index.h"

#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

bool takes_indices(const Node& node) {
  return node.op == Op::gather || info(node.op).op_class == OpClass::Scatter;
}

// The values of one node, by the interpreter.
std::vector<int64_t> values_of(Graph graph, int id, std::span<const Tensor> inputs) {
  graph.outputs = {id};
  return interpret(dce(graph), inputs)[0].to_vector<int64_t>();
}

// "mlp.cpp:14: gather"
std::string in_words(const Node& node) {
  return str(node.where.file.empty() ? "" : node.where.str() + ": ", info(node.op).name);
}

// What the node's indices are to be below.
const Expr& size_of_axis(const Graph& graph, const Node& node) {
  const size_t axis = static_cast<size_t>(node.integer(Key::axis, 0));
  return graph[node.inputs[0]].type.shape[axis];
}

std::string first_bad(const Graph& graph, const Node& node, std::span<const Tensor> inputs) {
  const int64_t size = size_of_axis(graph, node).constant();
  for (const int64_t index : values_of(graph, node.inputs[1], inputs)) {
    if (index >= 0 && index < size) continue;
    return str(in_words(node), ": an index is out of range: ", index, " for size ", size);
  }
  return "";
}

}  // namespace

std::string bad_index_in_words(const Graph& traced, std::span<const Tensor> inputs) {
  std::vector<Tensor> here;
  std::vector<Sizes> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  const Graph graph = inline_calls(with_sizes_of(traced, shapes));
  for (const Tensor& input : inputs) here.push_back(on_host(input));
  for (const Node& node : graph.nodes) {
    const std::string words = takes_indices(node) ? first_bad(graph, node, here) : "";
    if (!words.empty()) return words;
  }
  return "";
}

std::vector<IndexUse> index_uses(const Graph& traced) {
  const Graph graph = inline_calls(traced);
  std::vector<IndexUse> uses;
  for (const Node& node : graph.nodes) {
    if (!takes_indices(node) || !size_of_axis(graph, node).is_constant()) continue;
    uses.push_back({in_words(node), size_of_axis(graph, node).constant()});
  }
  return uses;
}

void rethrow_index_error(const Graph& graph, const std::string& name,
                         std::span<const Tensor> inputs) {
  const std::string which = bad_index_in_words(graph, inputs);
  if (which.empty()) throw;
  fail(name, ": ", which, "; check the values of the index tensor");
}

}  // namespace tiny_compile
