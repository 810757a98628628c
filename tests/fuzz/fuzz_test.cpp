// 300 random graphs in C++ and 150 in CUDA, in cases of 30 and 38 so that they run side by side.
// `make fuzz N=...` runs more.
#include <algorithm>

#include "tests/catch.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/shrink.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/graph/interpreter.h"

using namespace tiny_compile;

namespace {

void require_none(const std::vector<FuzzFailure>& failures) {
  for (const FuzzFailure& failure : failures)
    UNSCOPED_INFO("seed " << failure.seed << " after " << failure.stage << "\n"
                          << failure.text);
  REQUIRE(failures.empty());
}

int nodes_besides_inputs(const Graph& graph) {
  return graph.size() - static_cast<int>(graph.inputs().size());
}

// A pass with a mistake: every subtraction has its operands swapped.
Graph swapped_sub(const Graph& graph) {
  Graph result = graph;
  for (Node& node : result.nodes) {
    if (node.op == Op::sub) std::swap(node.inputs[0], node.inputs[1]);
  }
  return result;
}

// Another one: the last turn of each kernel's first loop is forgotten.
Program short_loops(const Program& program) {
  Program result = program;
  for (Kernel& kernel : result.kernels) {
    if (kernel.rows == 0) continue;
    Axis& axis = kernel.axes[0];
    axis.extent = axis.extent - 1;
    const Substitution shorter = {{axis.name, axis.symbol()}};
    for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, shorter);
    for (Step& step : kernel.steps) step.index = substitute(step.index, shorter);
  }
  return result;
}

// The graph, before the program that a stage made of it, or what is wrong with that.
Graph graph_in(const FuzzFailure& failure) {
  return parse_graph(failure.text.substr(0, failure.text.find("\n}\n") + 3));
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("random graphs keep their bits through every stage and in C++", "[fuzz]",
                       ((int shard), shard), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9) {
  use_no_cache();
  const uint64_t first = 1000 + 20 * shard;
  require_none(fuzz_loops(first, 20));
  require_none(fuzz_cpp(first, 20));
}

TEMPLATE_TEST_CASE_SIG("random gradients keep their bits through every stage and in C++",
                       "[fuzz]", ((int shard), shard), 0, 1, 2, 3) {
  use_no_cache();
  const uint64_t first = 5000 + 24 * shard;
  require_none(fuzz_loops(first, 24, default_pipeline(), random_gradient));
  require_none(fuzz_cpp(first, 8, default_pipeline(), random_gradient));
}

TEMPLATE_TEST_CASE_SIG("random gradients that compute again keep their bits", "[fuzz]",
                       ((int shard), shard), 0, 1) {
  use_no_cache();
  const uint64_t first = 7000 + 24 * shard;
  for (uint64_t seed = first; seed < first + 24; seed++) {
    INFO("seed " << seed);
    const Graph plain = random_gradient(seed), again = random_recomputed(seed);
    verify(again);
    REQUIRE(parse_graph(print(again)) == again);
    const std::vector<Tensor> inputs = random_inputs(plain, seed);
    const std::vector<Tensor> want = interpret(plain, inputs), made = interpret(again, inputs);
    for (size_t k = 0; k < want.size(); k++) REQUIRE(same_bits(made[k], want[k]));
  }
  require_none(fuzz_loops(first, 24, default_pipeline(), random_recomputed));
  require_none(fuzz_cpp(first, 8, default_pipeline(), random_recomputed));
}

#ifndef __SANITIZE_THREAD__  // it takes fibers for threads
TEMPLATE_TEST_CASE_SIG("random graphs keep their bits as CUDA, thread by thread",
                       "[fuzz][threads]", ((int shard), shard), 0, 1, 2, 3) {
  use_no_cache();
  require_none(fuzz_threads(3000 + 18 * shard, 18));
  for (uint64_t k = 0; k < 8; k++)  // long rows
    require_none(fuzz_threads(10000 * 16 + 15 + 16 * (8 * shard + k), 1));
}

TEMPLATE_TEST_CASE_SIG("random graphs beside their copies keep their bits in common launches",
                       "[fuzz][threads][group_launches]", ((int shard), shard), 0, 1) {
  use_no_cache();
  require_none(fuzz_threads(5000 + 12 * shard, 12, default_pipeline(), random_twins));
}
#endif

TEST_CASE("a wrong graph pass is found and shrunk to the op it got wrong", "[fuzz]") {
  const auto failures = fuzz_loops(1, 200, replace(default_pipeline(), "cse", swapped_sub));
  REQUIRE(!failures.empty());
  for (const FuzzFailure& failure : failures) {
    INFO(failure.text);
    REQUIRE(failure.stage == "cse");
    const Graph graph = graph_in(failure);
    REQUIRE(nodes_besides_inputs(graph) <= 3);
    REQUIRE(std::any_of(graph.nodes.begin(), graph.nodes.end(),
                        [](const Node& node) { return node.op == Op::sub; }));
  }
}

TEST_CASE("a wrong Program pass is found and shrunk to one kernel", "[fuzz]") {
  const auto failures = fuzz_loops(1, 20, replace(default_pipeline(), "fuse", short_loops));
  REQUIRE(failures.size() > 5);
  for (const FuzzFailure& failure : failures) {
    INFO(failure.text);
    REQUIRE(failure.stage == "fuse");
    REQUIRE(nodes_besides_inputs(graph_in(failure)) <= 1);
  }
}

TEST_CASE("guards tell when a kernel writes outside its buffers", "[fuzz]") {
  use_no_cache();
  const Graph graph =
      parse_graph("graph f(%0 x: f32[5]) {\n  %1: f32[5] = exp %0\n  return %1\n}");
  const Program program = run_pipeline(default_pipeline(), graph, true).program;
  Source source = emit_cpp(lower_to_tiles(program));
  source.kernels[0].units = source.kernels[0].units + 1;
  const BuiltLibrary built = build_cpp(source.text, default_toolchain());
  REQUIRE_THROWS_WITH(run_guarded(program, source, *built.library, random_inputs(graph, 1)),
                      Catch::Matchers::ContainsSubstring("wrote outside y1"));
}

TEST_CASE("shrinking keeps what fails and drops all else", "[fuzz]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[33,17], %1 y: f32[33,17]) {
    %2: f32[33,17] = add %0, %1
    %3: f32[33,17] = exp %2
    %4: f32[33,17] = sin %3
    %5: f32[33] = sum %4 {axes=[1]}
    %6: f32[33] = neg %5
    return %6, %3
  })");
  const Graph small = shrink(graph, [](const Graph& g) {
    return std::any_of(g.nodes.begin(), g.nodes.end(),
                       [](const Node& node) { return node.op == Op::sum; });
  });
  INFO(print(small));
  REQUIRE(nodes_besides_inputs(small) == 1);
  REQUIRE(small.inputs().size() <= 2);
  REQUIRE(product(small[small.inputs()[0]].type.shape).constant() <= 2);
}

// What long runs of the fuzzer found, kept.
namespace {

void require_same_in_cpp(const std::string& text) {
  use_no_cache();
  const Graph graph = parse_graph("graph f" + text);
  const Program program = run_pipeline(default_pipeline(), graph, true).program;
  const Source source = emit_cpp(lower_to_tiles(program));
  const BuiltLibrary built = build_cpp(source.text, default_toolchain());
  for (uint64_t seed = 1; seed <= 5; seed++) {
    const std::vector<Tensor> inputs = random_inputs(graph, seed);
    INFO(source.text);
    REQUIRE(same_bits(interpret(graph, inputs)[0],
                      run_guarded(program, source, *built.library, inputs)[0]));
  }
}

}  // namespace

TEST_CASE("an index that is negative before its remainder is taken", "[fuzz]") {
  require_same_in_cpp(R"((%0 x: f32[17]) {
    %1: f32[3,17] = expand %0
    %2: f32[51] = reshape %1
    %3: f32[51] = flip %2 {axes=[0]}
    return %3
  })");
  require_same_in_cpp(R"((%0 x: f32[17,17]) {
    %1: f32[17,17] = flip %0 {axes=[0]}
    %2: f32[289] = reshape %1
    %3: f32[289] = flip %2 {axes=[0]}
    return %3
  })");
}

TEST_CASE("a product of 64-bit integers that is narrowed keeps its factors", "[fuzz]") {
  require_same_in_cpp(R"((%0 x: i8[2,2,16]) {
    %1: i8[2,2,16] = abs %0
    %2: i8[2,2,16] = permute %1 {axes=[1,0,2]}
    %3: i64[1,2,16] = prod %2 {axes=[0], keepdim=1}
    %4: i8[1,2,16] = cast %3
    return %4
  })");
}

TEST_CASE("a matmul of small integers counts its own bits alone", "[fuzz]") {
  require_same_in_cpp(R"((%0 x: i8[2,2], %1 y: i8[2,2]) {
    %2: i8[2,2] = matmul %0, %1
    %3: i8[2,2] = popcount %2
    return %3
  })");
}

TEST_CASE("the negative of a zero that fma gave is -0", "[fuzz]") {
  require_same_in_cpp(R"((%0 x: u64[33]) {
    %1: u64[33] = shift_right %0, %0
    %2: f32[33] = cast %1
    %3: f32[33] = erf %2
    %4: f32[33] = neg %3
    return %4
  })");
}

TEST_CASE("a value that varies over one of two loops is not kept for both", "[fuzz]") {
  require_same_in_cpp(R"((%0 x: f32[4,3,1]) {
    %1: f32[4,3,7] = expand %0
    %2: f32[4,1,1] = max %1 {axes=[1,2], keepdim=1}
    %3: f32[4,3,7] = expand %2
    %4: f32[4,3,7] = sub %1, %3
    %5: f32[4,3,7] = exp %4
    %6: f32[4,1,1] = sum %5 {axes=[1,2], keepdim=1}
    %7: f32[4,3,7] = expand %6
    %8: f32[4,3,7] = div %5, %7
    return %8
  })");
}
