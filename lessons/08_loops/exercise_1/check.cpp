#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// The last kernel's rows, after joining.
std::string rows_become(const Graph& graph, const std::vector<int64_t>& wanted) {
  const Program before = lower(graph), got = exercise::join_rows(before);
  const Kernel& kernel = got.kernels.back();
  std::vector<int64_t> rows;
  for (int row = 0; row < kernel.rows; row++)
    rows.push_back(kernel.axes[row].extent.constant());
  const std::string trouble = rows == wanted ? other_bits(graph, got)
                                             : "wanted rows of " + join(wanted, ", ") +
                                                   "; yours:\n" + print(got, kernel);
  return trouble.empty() ? "" : "from:\n" + print(before, before.kernels.back()) + trouble;
}

}  // namespace

TEST_CASE("an element by element op is one loop") {
  EXPECT(rows_become(graph_of("%0 x: f32[7,11]", "%1: f32[7,11] = exp %0; return %1"), {77}));
}

TEST_CASE("three loops become one") {
  EXPECT(
      rows_become(graph_of("%0 x: f32[3,5,7]", "%1: f32[3,5,7] = exp %0; return %1"), {105}));
}

TEST_CASE("a transposed read keeps both loops") {
  EXPECT(rows_become(graph_of("%0 x: f32[7,11]",
                              "%1: f32[11,7] = permute %0 {axes=[1,0]}; %2: f32[11,7] = exp "
                              "%1; return %2"),
                     {11, 7}));
}

TEST_CASE("a broadcast keeps both loops") {
  EXPECT(rows_become(graph_of("%0 x: f32[7,11], %1 b: f32[11]",
                              "%2: f32[7,11] = expand %1; %3: f32[7,11] = add %0, %2;"
                              "return %3"),
                     {7, 11}));
}

TEST_CASE("a broadcast over the first loop joins the others") {
  EXPECT(rows_become(graph_of("%0 x: f32[3,5,7], %1 b: f32[5,7]",
                              "%2: f32[3,5,7] = expand %1; %3: f32[3,5,7] = add %0, %2;"
                              "return %3"),
                     {3, 35}));
}

TEST_CASE("every second element is still one loop") {
  EXPECT(rows_become(graph_of("%0 x: f32[154]",
                              "%1: f32[77] = slice %0 {axis=0, start=0, stop=153, step=2};"
                              "%2: f32[7,11] = reshape %1; %3: f32[7,11] = exp %2; return %3"),
                     {77}));
}

TEST_CASE("a division of the flat index cannot tell") {
  EXPECT(rows_become(graph_of("%0 x: f32[14,6]",
                              "%1: f32[6,14] = permute %0 {axes=[1,0]}; %2: f32[7,12] = "
                              "reshape %1; %3: f32[7,12] = neg %2; return %3"),
                     {84}));
}

TEST_CASE("a loop inside a division is seen") {
  EXPECT(rows_become(graph_of("%0 x: f32[42,4]",
                              "%1: f32[4,42] = permute %0 {axes=[1,0]}; %2: f32[21,8] = "
                              "reshape %1; %3: f32[21,7] = slice %2 {axis=1, start=0, stop=7, "
                              "step=1}; %4: f32[21,7] = neg %3; return %4"),
                     {21, 7}));
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(other_bits_made([](const Graph& graph) { return exercise::join_rows(lower(graph)); }));
}
