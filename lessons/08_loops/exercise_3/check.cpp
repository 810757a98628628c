#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// exp, tanh, ... that a program computes, over all points.
int64_t dear_calls(const Program& program) {
  int64_t calls = 0;
  for (const Kernel& kernel : program.kernels) {
    int64_t points = 1, dear = 0;
    for (const Axis& axis : kernel.axes) points *= axis.extent.constant();
    for (const Scalar& scalar : kernel.scalars)
      dear += scalar.kind == ScalarKind::Apply && exercise::is_dear(scalar.op);
    calls += dear * points;
  }
  return calls;
}

std::string kernels_of(const Program& program) {
  std::string text;
  for (const Kernel& kernel : program.kernels) text += print(program, kernel);
  return text;
}

std::string becomes(const Graph& graph, size_t kernels, int64_t calls) {
  const Program before = fuse(lower(graph)), got = exercise::hoist(before);
  if (const std::string trouble = other_bits(graph, got); !trouble.empty()) return trouble;
  if (got.kernels.size() == kernels && dear_calls(got) <= calls) return "";
  return str("before:\n", kernels_of(before), "yours, with ", dear_calls(got),
             " calls of dear functions:\n", kernels_of(got), "wanted: ", kernels,
             " kernels and at most ", calls, " calls");
}

const std::string kInputs = "%0 x: f32[57,31], %1 b: f32[31]";

}  // namespace

TEST_CASE("a formula of one axis moves out") {
  EXPECT(becomes(graph_of(kInputs,
                          "%2: f32[57,31] = expand %1; %3: f32[57,31] = exp %2;"
                          "%4: f32[57,31] = mul %0, %3; return %4"),
                 2, 31));
}

TEST_CASE("a formula of all axes stays") {
  EXPECT(becomes(graph_of(kInputs,
                          "%2: f32[57,31] = expand %1; %3: f32[57,31] = mul %0, %2;"
                          "%4: f32[57,31] = exp %3; return %4"),
                 1, 57 * 31));
}

TEST_CASE("a formula knows what its operands know") {
  EXPECT(
      becomes(graph_of(kInputs, "%2: f32[57,31] = neg %0; %3: f32[57,31] = exp %2; return %3"),
              1, 57 * 31));
}

TEST_CASE("cheap formulas stay") {
  EXPECT(becomes(graph_of(kInputs,
                          "%2: f32[57,31] = expand %1; %3: f32[57,31] = neg %2;"
                          "%4: f32[57,31] = mul %0, %3; return %4"),
                 1, 0));
}

TEST_CASE("the largest formula moves") {
  EXPECT(becomes(graph_of(kInputs,
                          "%2: f32[57,31] = expand %1; %3: f32[57,31] = exp %2;"
                          "%4: f32[57,31] = tanh %3; %5: f32[57,31] = mul %4, %3;"
                          "%6: f32[57,31] = mul %0, %5; return %6"),
                 2, 2 * 31));
}

TEST_CASE("a part that is needed beside the largest formula moves too") {
  EXPECT(becomes(graph_of(kInputs,
                          "%2: f32[57,31] = expand %1; %3: f32[57,31] = exp %2;"
                          "%4: f32[57,31] = tanh %3; %5: f32[57,31] = mul %0, %3;"
                          "%6: f32[57,31] = add %4, %5; return %6"),
                 3, 3 * 31));
}

TEST_CASE("two formulas of one kernel both move") {
  EXPECT(becomes(graph_of("%0 x: f32[57,31], %1 b: f32[31], %2 c: f32[57,1]",
                          "%3: f32[57,31] = expand %1; %4: f32[57,31] = exp %3;"
                          "%5: f32[57,31] = expand %2; %6: f32[57,31] = tanh %5;"
                          "%7: f32[57,31] = mul %0, %4; %8: f32[57,31] = mul %7, %6;"
                          "return %8"),
                 3, 31 + 57));
}

TEST_CASE("a formula of no axis is computed once") {
  EXPECT(becomes(graph_of("%0 x: f32[57,31], %1 s: f32[]",
                          "%2: f32[57,31] = expand %1; %3: f32[57,31] = exp %2;"
                          "%4: f32[57,31] = mul %0, %3; return %4"),
                 2, 1));
}

TEST_CASE("a mask is known too") {
  // The upper rows are b, the lower ones are 0: exp of it knows both axes, one through its mask.
  EXPECT(becomes(graph_of("%0 x: f32[57,31], %1 b: f32[31]",
                          "%2: f32[20,31] = expand %1;"
                          "%3: f32[57,31] = pad %2 {low=[0,0], high=[37,0], value=0.0};"
                          "%4: f32[57,31] = exp %3; %5: f32[57,31] = mul %0, %4; return %5"),
                 1, 57 * 31));
}

TEST_CASE("reductions stay as they are") {
  EXPECT(becomes(graph_of(kInputs,
                          "%2: f32[57,31] = expand %1; %3: f32[57,31] = exp %2;"
                          "%4: f32[57,31] = mul %0, %3; %5: f32[57] = sum %4 {axes=[1]};"
                          "return %5"),
                 1, 57 * 31));
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(
      other_bits_made([](const Graph& graph) { return exercise::hoist(fuse(lower(graph))); }));
}

TEST_CASE("positions transposed by cos and sin cost one row each") {
  // A rotary embedding: x * cos(p*f) + x * sin(p*f), for 257 batches of 31 positions.
  const Graph graph = graph_of(
      "%0 x: f32[257,31,8], %1 p: f32[31,1], %2 f: f32[8]",
      "%3: f32[257,31,8] = expand %1; %4: f32[257,31,8] = expand %2;"
      "%5: f32[257,31,8] = mul %3, %4; %6: f32[257,31,8] = cos %5; %7: f32[257,31,8] = sin %5;"
      "%8: f32[257,31,8] = mul %0, %6; %9: f32[257,31,8] = mul %0, %7;"
      "%10: f32[257,31,8] = add %8, %9; return %10");
  const Program program = run_pipeline(exercise::with_mine(), graph, true).program;
  EXPECT(other_bits(graph, program, 1));
  score("calls of cos and sin", dear_calls(program), 2 * 31 * 8);
  CHECK(dear_calls(program) <= 2 * 31 * 8);
}
