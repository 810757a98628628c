// Parts of long reductions beside what goes over the same rows: read once, with the same bits.
#include "tiny_compile/loops/join_parts.h"

#include "tests/catch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/schedule/policy.h"
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

namespace {

// The kernels of a program in text, for a GPU, once they are scheduled.
size_t kernels_of(const std::string& text) {
  return schedule(parse_program("program f on cuda {\n" + text + "}\n")).kernels.size();
}

const std::string kLargest = R"(  kernel max_1 rows(i0: 16128) {
    r0: f32 = max(j0: 4096) load x[i0 + j0*16128]
    store y1[i0] = r0
  }
)";
const std::string kSums = R"(  kernel sum_7 rows(i0: 4, i1: 16128) {
    $0 = load x[i0*16515072 + i1 + j0*16128]
    r0: f32 = sum(j0: 1024) $0
    r1: f32 = sum(j0: 1024) mul(sub($0, r0), sub($0, r0))
    store y7[i0*16128 + i1] = r1
  }
)";
const std::string kBuffers =
    "  input x: f32[4096,16128]\n  input z: f32[16128]\n  output y1: f32[16128]\n"
    "  output y7: f32[4,16128]\n";

}  // namespace

TEST_CASE("parts join what runs earlier or later, where neither waits", "[split]") {
  const std::string end = "  return y1, y7\n";
  CHECK(kernels_of(kBuffers + kLargest + kSums + "  launch max_1\n  launch sum_7\n" + end) ==
        2);
  CHECK(kernels_of(kBuffers + kSums + kLargest + "  launch sum_7\n  launch max_1\n" + end) ==
        2);
  // Launches in another order than kernels, what is computed again, and what waits, stay apart.
  CHECK(kernels_of(kBuffers + kSums + kLargest + "  launch max_1\n  launch sum_7\n" + end) ==
        3);
  std::string again = kSums;
  again.replace(again.find(" rows"), 0, " again=1");
  CHECK(kernels_of(kBuffers + kLargest + again + "  launch max_1\n  launch sum_7\n" + end) ==
        3);
  std::string waits = kSums;
  waits.replace(waits.find("sub($0, r0), "), 0, "add(load y1[i1], r0), ");
  waits.replace(waits.find(", sub($0, r0), sub($0, r0)"), 26, ", sub($0, r0)");
  CHECK(kernels_of(kBuffers + kLargest + waits + "  launch max_1\n  launch sum_7\n" + end) ==
        3);
  // It shares a number a column, which is little.
  std::string little = kSums;
  for (size_t at = 0; (at = little.find("load x[", at)) != std::string::npos; at++)
    little.replace(at, 6, "load z");
  little.replace(little.find("[i0*16515072 + i1 + j0*16128]"), 29, "[i1]");
  CHECK(kernels_of(kBuffers + kLargest + little + "  launch max_1\n  launch sum_7\n" + end) ==
        3);
}
