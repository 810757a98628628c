#include <cmath>

#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

Graph reduction(const std::string& op, int64_t n, const std::string& dtype = "f32") {
  return graph_of(str("%0 x: ", dtype, "[3,", n, "]"),
                  str("%1: ", dtype, "[3] = ", op, " %0 {axes=[1]}; return %1"));
}

std::string keeps_bits(const Graph& graph) {
  return other_bits(graph, exercise::all_by_fours(fuse(lower(graph))));
}

std::string printed(const Graph& graph) {
  const Program program = exercise::all_by_fours(fuse(lower(graph)));
  return print(program, program.kernels.back());
}

std::string shows(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos ? "" : "\"" + part + "\" is missing in\n" + text;
}

// The result for an x that is `value` everywhere.
float reduced(const std::string& op, int64_t n, double value) {
  const Graph graph = reduction(op, n);
  const Program program = exercise::all_by_fours(lower(graph));
  return interpret(program, std::vector<Tensor>{full({3, n}, value)})[0].to_vector<float>()[1];
}

}  // namespace

TEST_CASE("without a tail two loops are left") {
  EXPECT(shows(printed(reduction("max", 1000)), "max(j0: 250, j1: 4)"));
  EXPECT(keeps_bits(reduction("max", 1000)));
}

TEST_CASE("four divides 1000: no mask") {
  const std::string text = printed(reduction("max", 1000));
  INFO(text);
  CHECK(text.find("if") == std::string::npos);
}

TEST_CASE("elements keep their order") {
  EXPECT(keeps_bits(reduction("sum", 1000)));
  EXPECT(keeps_bits(reduction("sum", 2048)));
  EXPECT(shows(printed(reduction("sum", 1000)),
               "sum(j0: 250, j1: 4) load x[i0*1000 + j0*4 + j1]"));
}

TEST_CASE("a tail of one element counts") {
  CHECK(reduced("sum", 1001, 1) == 1001);
  EXPECT(keeps_bits(reduction("max", 1001)));
}

TEST_CASE("nothing behind the end is loaded") {
  for (int64_t n : {2, 3, 5, 6, 7, 1001, 1023}) EXPECT(keeps_bits(reduction("sum", n)));
}

TEST_CASE("the largest of negative numbers is negative") {
  CHECK(reduced("max", 1001, -3) == -3);
  CHECK(reduced("min", 1001, 3) == 3);
  CHECK(reduced("prod", 5, 2) == 32);
}

TEST_CASE("a sum of minus zeros is minus zero") {
  CHECK(std::signbit(reduced("sum", 1001, -0.0)));
}

TEST_CASE("every tail of every reduction keeps its bits") {
  for (const char* op : {"sum", "max", "min", "prod"}) {
    for (const char* dtype : {"f32", "f64", "f16", "bf16"}) {
      for (int64_t n = 2; n < 10; n++) EXPECT(keeps_bits(reduction(op, n, dtype)));
    }
  }
  for (int64_t n : {1021, 1024, 1025, 2047, 2049}) EXPECT(keeps_bits(reduction("sum", n)));
}

TEST_CASE("a store outside the loop has no mask") {
  EXPECT(keeps_bits(
      graph_of("%0 x: f32[3,101], %1 b: f32[3]",
               "%2: f32[3] = sum %0 {axes=[1]}; %3: f32[3] = add %2, %1; return %3")));
  EXPECT(shows(
      printed(graph_of("%0 x: f32[3,101], %1 b: f32[3]",
                       "%2: f32[3] = sum %0 {axes=[1]}; %3: f32[3] = add %2, %1; return %3")),
      "load b[i0])"));
}

TEST_CASE("a reduction that uses another's result keeps its bits") {
  EXPECT(keeps_bits(
      graph_of("%0 x: f32[3,101]",
               "%1: f32[3,1] = max %0 {axes=[1], keepdim=1}; %2: f32[3,101] = expand %1;"
               "%3: f32[3,101] = sub %0, %2; %4: f32[3,101] = exp %3;"
               "%5: f32[3] = sum %4 {axes=[1]}; return %5")));
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(other_bits_made(
      [](const Graph& graph) { return exercise::all_by_fours(fuse(lower(graph))); }));
}
