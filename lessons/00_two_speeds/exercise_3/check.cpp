#include "lessons/tools/check.h"
#include "exercise.h"

#include <random>

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

std::string other_count(const Graph& graph) {
  const int64_t counted = bytes_moved(run_pipeline({}, graph, true).program);
  const int64_t yours = exercise::bytes_of_graph(graph);
  if (yours == counted) return "";
  return str("you say ", yours, " bytes; counted: ", counted, "\n", print(graph));
}

// A chain of ops on a matrix, some with a bias, a row's sum or a number.
Graph random_chain(unsigned seed) {
  std::mt19937 random(seed);
  const int64_t rows = 2 + random() % 40, columns = 2 + random() % 40;
  const std::string whole = str("f32[", rows, ",", columns, "]");
  std::string body;
  int last = 0, next = 2;
  for (int i = 0; i < 8; i++) {
    const auto add = [&](const std::string& type, const std::string& text) {
      body += str("%", next, ": ", type, " = ", text, ";");
      return next++;
    };
    int other = last;
    switch (random() % 5) {
      case 0: other = add(whole, "expand %1"); break;
      case 1:
        other = add(str("f32[", rows, ",1]"), str("sum %", last, " {axes=[1], keepdim=1}"));
        other = add(whole, str("expand %", other));
        break;
      case 2: other = add(whole, str("expand %", add("f32[]", "constant {value=2.0}"))); break;
      case 3: other = 0; break;
      default: break;
    }
    last = add(whole, str(i % 2 ? "mul %" : "add %", last, ", %", other));
  }
  return graph_of(str("%0 x: ", whole, ", %1 bias: f32[", columns, "]"),
                  body + str("return %", last));
}

}  // namespace

TEST_CASE("an op reads its operands and writes its result") {
  EXPECT(other_count(graph_of("%0 x: f32[3,5]",
                              "%1: f32[3,5] = exp %0; %2: f32[3,5] = add %1, "
                              "%0; return %2")));
}

TEST_CASE("a bias is read once, not once a row") {
  EXPECT(other_count(graph_of("%0 x: f32[257,5], %1 bias: f32[5]",
                              "%2: f32[257,5] = expand %1; %3: f32[257,5] = add %0, %2; return "
                              "%3")));
}

TEST_CASE("constants are part of the code") {
  EXPECT(other_count(graph_of("%0 x: f32[7]",
                              "%1: f32[] = constant {value=2.0}; %2: f32[7] = "
                              "expand %1; %3: f32[7] = mul %0, %2; return %3")));
}

TEST_CASE("x * x reads x once") {
  EXPECT(other_count(graph_of("%0 x: f32[7]", "%1: f32[7] = mul %0, %0; return %1")));
}

TEST_CASE("a reduction writes what is left") {
  EXPECT(
      other_count(graph_of("%0 x: f32[3,1001]", "%1: f32[3] = sum %0 {axes=[1]}; return %1")));
}

TEST_CASE("a dtype has its own size") {
  EXPECT(other_count(graph_of("%0 x: bf16[7], %1 y: f64[7]",
                              "%2: f64[7] = cast %0; %3: bool[7] = lt %2, %1; %4: i8[7] = cast "
                              "%3; return %4")));
}

TEST_CASE("two hundred random chains") {
  for (unsigned seed = 1; seed <= 200; seed++) EXPECT(other_count(random_chain(seed)));
}
