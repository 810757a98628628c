#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

std::string kernels_of(const Program& program) {
  std::string text;
  for (const Kernel& kernel : program.kernels) text += print(program, kernel);
  return text;
}

std::string becomes(const Graph& graph, size_t kernels) {
  const Program before = fuse_greedily(lower(graph)), got = exercise::join_readers(before);
  if (const std::string trouble = other_bits(graph, got); !trouble.empty()) return trouble;
  if (got.kernels.size() == kernels) return "";
  return str("before:\n", kernels_of(before), "yours:\n", kernels_of(got), "wanted: ", kernels,
             " kernels");
}

}  // namespace

TEST_CASE("two reductions of one buffer become one kernel") {
  EXPECT(becomes(graph_of("%0 x: f32[257,101]",
                          "%1: f32[257] = sum %0 {axes=[1]};"
                          "%2: f32[257] = max %0 {axes=[1]};"
                          "return %1, %2"),
                 1));
}

TEST_CASE("three readers become one kernel") {
  EXPECT(becomes(graph_of("%0 x: f32[257,101]",
                          "%1: f32[257] = sum %0 {axes=[1]};"
                          "%2: f32[257] = max %0 {axes=[1]};"
                          "%3: f32[257] = min %0 {axes=[1]};"
                          "return %1, %2, %3"),
                 1));
}

TEST_CASE("kernels that read different buffers stay apart") {
  EXPECT(becomes(graph_of("%0 x: f32[257], %1 y: f32[257]",
                          "%2: f32[257] = exp %0; %3: f32[257] = neg %1; return %2, %3"),
                 2));
}

TEST_CASE("readers of other rows stay apart") {
  EXPECT(becomes(graph_of("%0 x: f32[257,101]",
                          "%1: f32[257] = sum %0 {axes=[1]};"
                          "%2: f32[101] = max %0 {axes=[0]};"
                          "return %1, %2"),
                 2));
}

TEST_CASE("a reader that waits by way of another kernel stays apart") {
  // matmul reads a; the last kernel reads x again, and what the matmul made.
  EXPECT(becomes(graph_of("%0 x: f32[17,16], %1 w: f32[16,16]",
                          "%2: f32[17,16] = tanh %0; %3: f32[17,16] = matmul %2, %1;"
                          "%4: f32[17,1] = sum %3 {axes=[1], keepdim=1};"
                          "%5: f32[17,16] = expand %4; %6: f32[17,16] = mul %0, %5;"
                          "return %6"),
                 3));
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(
      other_bits_made([](const Graph& graph) { return exercise::join_readers(lower(graph)); }));
}

TEST_CASE("four statistics of a matrix read it once") {
  const Graph graph = graph_of("%0 x: f32[257,1001]",
                               "%1: f32[257] = sum %0 {axes=[1]};"
                               "%2: f32[257] = max %0 {axes=[1]};"
                               "%3: f32[257] = min %0 {axes=[1]};"
                               "%4: f32[257,1001] = mul %0, %0;"
                               "%5: f32[257] = sum %4 {axes=[1]};"
                               "return %1, %2, %3, %5");
  const int64_t bytes = bytes_moved(exercise::join_readers(fuse_greedily(lower(graph))));
  score("bytes moved", bytes, 257 * 1001 * 4 + 4 * 257 * 4);
  CHECK(bytes <= 257 * 1001 * 4 + 4 * 257 * 4);
}
