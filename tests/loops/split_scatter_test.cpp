// A long scatter in chunks that run side by side: the interpreter's bits, in C++ and in CUDA's text.
#include "tiny_compile/loops/split_scatter.h"
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/scatter_rules.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kSplit = "_chunks";

Tensor places(const Sizes& shape, int64_t targets) {
  return minimum((rand(shape) * static_cast<double>(targets)).to(int64), targets - 1);
}

Out added(In i) { return {scatter_add(i[0], 0, i[1], i[2])}; }
Out multiplied(In i) { return {scatter_reduce(i[0], 0, i[1], i[2], "prod")}; }

Out rows_added(In i) {
  return {scatter_add(i[0], 0, expand(i[1].unsqueeze(1), {i[2].size(0), i[2].size(1)}), i[2])};
}

bool is_split(const Function& function, const Out& inputs, Target target) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Staged all = run_pipeline(default_pipeline(), graph, true, target);
  return print(all.program).find(kSplit) != std::string::npos;
}

void check_split(const Function& function, const Out& inputs) {
  const Staged all = check_bits(function, inputs);
  const std::string text = print(all.program);
  CHECK_THAT(text, ContainsSubstring(kSplit));
  CHECK(parse_program(text) == all.program);
  const Graph graph = trace(function, inputs, "f").graph;
  CHECK(same_bits(interpret(all.program, inputs)[0], interpret(graph, inputs)[0]));
}

}  // namespace

TEST_CASE("a long scatter into few targets becomes chunks and their combination",
          "[scatter][threads]") {
  manual_seed(1);
  for (DType type : {float32, float64, bfloat16, float16, int32, int8}) {
    CAPTURE(c_type(type));
    const Tensor x = (randn({10}) * 8).to(type), d = (randn({5000}) * 8).to(type);
    check_split(added, {x, places({5000}, 10), d});
    check_split(multiplied, {x, places({5000}, 10), d});
  }
  for (int64_t updates : {4096, 4097, 7168})
    check_split(added, {randn({1}), places({updates}, 1), randn({updates})});
}

TEST_CASE("chunks of rows, of an index shared by columns and of one for each",
          "[scatter][threads]") {
  manual_seed(2);
  check_split(rows_added, {randn({3, 37}), places({4100}, 3), randn({4100, 37})});
  check_split(added, {randn({7, 5}), places({4100, 5}, 7), randn({4100, 5})});
  check_split(added, {randn({7, 5}), places({4100, 3}, 7), randn({4100, 3})});  // fewer columns
  check_split([](In i) { return Out{scatter_add(i[0] * 2, 1, i[1], tanh(i[2]))}; },
              {randn({3, 900}), places({3, 4096}, 900), randn({3, 4096})});
}

TEST_CASE("a target that no chunk updates keeps its zero, infinity or NaN",
          "[scatter][threads]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = from_vector<float>({-0.0f, 0.0f, infinity, NAN, -0.0f, 1.0f, 3e38f, 0.0f});
  const Tensor d =
      concat({from_vector<float>({-0.0f, infinity, NAN, 3e38f}), zeros({4996}) - 0.0}, 0);
  const Tensor last_ones = places({5000}, 4) + 4;  // targets 0 .. 3 have none
  for (DType type : {float32, float64, bfloat16, float16}) {
    check_split(added, {x.to(type), last_ones, d.to(type)});
    check_split(multiplied, {x.to(type), last_ones, d.to(type)});
  }
}

TEST_CASE("which scatters are split", "[scatter]") {
  const auto inputs = [](int64_t targets, int64_t updates) {
    return Out{zeros({targets}), zeros({updates}).to(int64), zeros({updates})};
  };
  CHECK(is_split(added, inputs(10, 4096), Target::Cuda));
  CHECK_FALSE(is_split(added, inputs(10, 3000), Target::Cuda));    // few chunks
  CHECK_FALSE(is_split(added, inputs(2000, 4096), Target::Cuda));  // many targets
  CHECK_FALSE(is_split(added, inputs(10, 4096), Target::Cpp));
  CHECK(is_split(added, inputs(10, 100000), Target::Cpp));
  const auto latest = [](In i) { return Out{scatter(i[0], 0, i[1], i[2])}; };
  CHECK_FALSE(is_split(latest, inputs(10, 4096), Target::Cuda));
}

TEST_CASE("integers have few, long chunks, and a block adds one up in shared memory",
          "[scatter][threads]") {
  manual_seed(4);
  for (DType type : {int64, int32, uint8}) {
    const Tensor x = (randn({70}) * 80).to(type), d = (randn({5000}) * 80).to(type);
    const Staged all = check_bits(added, {x, places({5000}, 70), d});
    CHECK_THAT(all.source.text, ContainsSubstring("atomicAdd((unsigned"));
  }
  const Out inputs = {zeros({3}).to(int32), places({1100000}, 3), ones({1100000}).to(int32)};
  const Graph graph = trace(added, inputs, "f").graph;
  const Staged all = run_pipeline(default_pipeline(), graph, true, Target::Cpp);
  CHECK_THAT(print(all.program), ContainsSubstring("(j1: 2048)"));
  CHECK(same_bits(build(all.program, all.source).run(inputs)[0], interpret(graph, inputs)[0]));
}

TEST_CASE("a chunk's results are in order as they are", "[scatter][threads]") {
  manual_seed(5);
  for (int64_t updates : {4097, 32 * 1024 + 1, 131 * 1024}) {
    const Staged all = check_bits(added, {randn({2}), places({updates}, 2), randn({updates})});
    const Kernel& last = all.program.kernels.back();
    CHECK(is_chain(last, last.steps.back()));
  }
}

TEST_CASE("more than 1024 chunks are combined by several scatters, in C++", "[scatter]") {
  manual_seed(3);
  const Out inputs = {randn({3}), places({1050000}, 3), randn({1050000})};
  const Graph graph = trace(added, inputs, "f").graph;
  const Staged all = run_pipeline(default_pipeline(), graph, true, Target::Cpp);
  CHECK(all.program.kernels.back().steps.size() == 3);
  CHECK(same_bits(build(all.program, all.source).run(inputs)[0], interpret(graph, inputs)[0]));
}
