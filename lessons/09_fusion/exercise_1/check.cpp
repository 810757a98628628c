#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// One kernel a line of the body: number k is the k-th line's.
std::string says(const std::string& body, int producer, int consumer, bool wanted) {
  const Program program = lower(graph_of("%0 x: f32[7]", body));
  const bool got = exercise::lies_between(program, producer, consumer);
  if (got == wanted) return "";
  std::string kernels;
  for (const Kernel& kernel : program.kernels) kernels += print(program, kernel);
  return str("between kernel ", producer, " and kernel ", consumer, " you say ", got, " of\n",
             kernels);
}

std::string fused_bits(const Graph& graph) {
  return other_bits(graph, fuse_greedily(lower(graph), exercise::lies_between), 1);
}

}  // namespace

TEST_CASE("a direct read alone has nothing between") {
  EXPECT(says("%1: f32[7] = exp %0; %2: f32[7] = neg %1; return %2", 0, 1, false));
}

TEST_CASE("one kernel between is found") {
  EXPECT(says("%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = add %1, %2; return %3", 0,
              2, true));
}

TEST_CASE("a way through two kernels counts") {
  EXPECT(
      says("%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = abs %2;"
           "%4: f32[7] = add %1, %3; return %4",
           0, 3, true));
  EXPECT(
      says("%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = abs %2;"
           "%4: f32[7] = sin %3; %5: f32[7] = cos %4; %6: f32[7] = add %1, %5; return %6",
           0, 5, true));
}

TEST_CASE("a kernel that waits for the producer alone is not between") {
  EXPECT(says("%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = abs %1; return %2, %3", 0,
              2, false));
}

TEST_CASE("a kernel that only stands between in the list is not between") {
  EXPECT(says("%1: f32[7] = exp %0; %2: f32[7] = neg %0; %3: f32[7] = add %1, %2; return %3", 0,
              2, false));
}

TEST_CASE("two hundred random graphs are fused without a ring") {
  for (int seed = 1; seed <= 200; seed++) {
    INFO("random graph " << seed);
    EXPECT(fused_bits(flat_random_graph(static_cast<uint64_t>(seed), 8)));
  }
}

TEST_CASE("the lesson's function becomes three kernels") {
  const Graph graph = graph_of(
      "%0 x: f32[257,64], %1 w: f32[64,64]",
      "%2: f32[257,1] = sum %0 {axes=[1], keepdim=1}; %3: f32[257,64] = expand %2;"
      "%4: f32[257,64] = div %0, %3; %5: f32[257,64] = matmul %4, %1; %6: f32[257,64] = exp %5;"
      "%7: f32[257,1] = sum %6 {axes=[1], keepdim=1}; %8: f32[257,64] = expand %7;"
      "%9: f32[257,64] = div %6, %8; %10: f32[257,64] = add %4, %9; return %10");
  const Program program = run_pipeline(exercise::with_mine(), graph, true).program;
  score("kernels", static_cast<int64_t>(program.kernels.size()), 3);
  CHECK(program.kernels.size() == 3);
}
