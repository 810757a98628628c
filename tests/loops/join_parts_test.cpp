// Parts of long reductions beside what goes over the same rows: read once, with the same bits.
#include "tiny_compile/loops/join_parts.h"

#include "tests/catch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/trace/creation.h"

using namespace tiny_compile;

TEST_CASE("chunks of a long column join what goes over them anyway, and read it once",
          "[split]") {
  const std::string graph = R"((%0 x: f32[4096,16128]) {
  %1: f32[16128] = max %0 {axes=[0]}
  %2: f32[4,1024,16128] = reshape %0
  %3: f32[4,1,16128] = sum %2 {axes=[1], keepdim=1}
  %4: f32[4,1024,16128] = expand %3
  %5: f32[4,1024,16128] = sub %2, %4
  %6: f32[4,1024,16128] = mul %5, %5
  %7: f32[4,16128] = sum %6 {axes=[1]}
  return %1, %7
})";
  const Program joined = as_scheduled("graph f" + graph);
  INFO(print(joined));
  REQUIRE(joined.kernels.size() == 2);  // the chunks, and the largest of their largest
  CHECK(std::count_if(joined.kernels[0].steps.begin(), joined.kernels[0].steps.end(),
                      [](const Step& s) { return s.kind == StepKind::Reduce; }) == 3);
  // What has to wait for the whole column does not join its chunks.
  const std::string waits = R"((%0 x: f32[4096,16128]) {
  %1: f32[16128] = max %0 {axes=[0]}
  %2: f32[4,1024,16128] = reshape %0
  %3: f32[4,1024,16128] = expand %1
  %4: f32[4,1024,16128] = sub %2, %3
  %5: f32[4,16128] = sum %4 {axes=[1]}
  return %1, %5
})";
  CHECK(as_scheduled("graph f" + waits).kernels.size() == 3);
}

TEST_CASE("a long reduction that joins others keeps its bits", "[split]") {
  const auto numbers = [](const Program& program, const Tensor& x) {
    std::vector<std::vector<float>> all;
    for (const Tensor& result : interpret(program, std::vector{x}))
      all.push_back(result.to_vector<float>());
    return all;
  };
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[4096,8]) {
  %1: f32[8] = sum %0 {axes=[0]}
  %2: f32[4,1024,8] = reshape %0
  %3: f32[4,1,8] = sum %2 {axes=[1], keepdim=1}
  %4: f32[4,1024,8] = expand %3
  %5: f32[4,1024,8] = sub %2, %4
  %6: f32[4,8] = max %5 {axes=[1]}
  return %1, %6
})");
  const Tensor x = randn({4096, 8});
  const Program whole = lower(graph);
  const Program parts =
      run_pipeline(until(default_pipeline(), "schedule"), graph, true, Target::Cuda).program;
  CHECK(parts.kernels.size() == 2);
  CHECK(numbers(parts, x) == numbers(whole, x));
}
