// A concat of many operands is a tree of short ones: same values, few functions, short text.
#include "tiny_compile/loops/short_concats.h"

#include <set>

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/trace/tracer.h"

using namespace tiny_compile;

namespace {

// concat of f32[a,7] with a = sizes(k), on the first axis.
template <typename Sizes>
Graph joined(int count, Sizes sizes) {
  Graph graph;
  std::vector<int> operands;
  std::vector<Type> types;
  for (int k = 0; k < count; k++) {
    Node input;
    input.name = str("x", k);
    input.type = {DType::f32, {sizes(k), 7}};
    types.push_back(input.type);
    operands.push_back(graph.append(input));
  }
  Node concat;
  concat.op = Op::concat;
  concat.inputs = operands;
  concat.set(Key::axis, {0});
  concat.type = infer(concat, types);
  graph.outputs = {graph.append(concat)};
  return graph;
}

int equal_sizes(int) { return 3; }
int ragged_sizes(int k) { return k % 5 == 3 ? 0 : k % 4; }

Staged staged(const Graph& graph, Target target) {
  return run_pipeline(default_pipeline(), graph, true, target);
}

size_t functions_of(const Source& source) {
  std::set<std::string> names;
  for (const KernelEntry& kernel : source.kernels) names.insert(kernel.function);
  return names.size();
}

}  // namespace

TEST_CASE("a short concat stays one node", "[short_concats]") {
  const Graph graph = joined(static_cast<int>(kMostJoined), equal_sizes);
  REQUIRE(with_short_concats(graph) == graph);
}

TEST_CASE("a tree of concats has the values of one", "[short_concats]") {
  for (int count : {129, 256, 257, 1100}) {
    for (const auto& sizes : {equal_sizes, ragged_sizes}) {
      const Graph graph = joined(count, sizes), tree = with_short_concats(graph);
      INFO(count << " operands, " << tree.size() << " nodes");
      verify(tree);
      for (const Node& node : tree.nodes) REQUIRE(node.inputs.size() <= kMostJoined);
      REQUIRE(tree[tree.outputs[0]].type == graph[graph.outputs[0]].type);
      const std::vector<Tensor> inputs = random_inputs(graph, 1);
      const Tensor want = interpret(graph, inputs)[0];
      REQUIRE(same_bits(interpret(tree, inputs)[0], want));
      REQUIRE(same_bits(interpret(lower(graph), inputs)[0], want));
    }
  }
}

TEST_CASE("the source of a concat of equal shapes does not grow with the operands",
          "[short_concats]") {
  for (Target target : {Target::Cpp, Target::Cuda}) {
    const Source some = staged(joined(1000, equal_sizes), target).source,
                 many = staged(joined(4000, equal_sizes), target).source;
    INFO(many.text.size() << " bytes after " << some.text.size());
    REQUIRE(functions_of(many) <= 6);
    REQUIRE(many.text.size() < some.text.size() + 60 * 1000);
    REQUIRE(many.text.size() < 120 * 1000);
  }
}

TEST_CASE("kernels of a long concat read as many buffers as there are operands, not squares",
          "[short_concats]") {
  for (int count : {500, 1000, 2000}) {
    const Program program = staged(joined(count, ragged_sizes), Target::Cpp).program;
    size_t scalars = 0;
    for (const Kernel& kernel : program.kernels) scalars += kernel.scalars.size();
    REQUIRE(scalars < 12 * static_cast<size_t>(count));
  }
}
