// What goes: nodes that no path leads from to an output. Inputs are the signature and stay.
#include "tests/passes/rewrites.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

void becomes(const std::string& inputs, const std::string& before, const std::string& after) {
  check_becomes(dce, inputs, before, after);
}

}  // namespace

TEST_CASE("what nobody reads goes, with all that only it needed", "[dce]") {
  becomes(
      "%0 x: f32[2]",
      "%1: f32[2] = exp %0  # a.cpp:1; %2: f32[2] = log %1  # a.cpp:2; %3: f32[2] = neg %0  "
      "# a.cpp:3; %4: f32[2] = add %1, %2  # a.cpp:4; return %3",
      "%1: f32[2] = neg %0  # a.cpp:3; return %1");
}

TEST_CASE("what one reader still needs stays", "[dce]") {
  becomes("%0 x: f32[2]",
          "%1: f32[2] = exp %0; %2: f32[2] = log %1; %3: f32[2] = neg %1; return %3",
          "%1: f32[2] = exp %0; %2: f32[2] = neg %1; return %2");
}

TEST_CASE("an output stays though nobody reads it, in its place and number", "[dce]") {
  const std::string all = "%1: f32[2] = exp %0; %2: f32[2] = log %0; return %2, %1, %2, %0";
  check_stays(dce, "%0 x: f32[2]", all);
}

TEST_CASE("inputs stay, wherever they stand", "[dce]") {
  becomes("%0 x: f32[2], %1 y: f32[3]",
          "%2: f32[3] = exp %1; %3: f32[2] = input late; %4: f32[2] = neg %3; return %0",
          "%2: f32[2] = input late; return %0");
}

TEST_CASE("a graph without outputs keeps its inputs alone", "[dce]") {
  becomes("%0 x: f32[2]", "%1: f32[2] = exp %0; return", "return");
}

TEST_CASE("a chain of 100,000 dead nodes goes without recursion", "[dce]") {
  Graph graph = graph_of("%0 x: f32[2]", "return %0");
  for (int i = 0; i < 100000; i++) {
    Node node;
    node.op = Op::exp;
    node.type = graph[0].type;
    node.inputs = {i};
    graph.append(node);
  }
  CHECK(dce(graph).size() == 1);
  graph.outputs = {graph.size() - 1};
  CHECK(dce(graph).size() == 100001);
}

TEST_CASE("the passes together keep bits, and run again they change nothing", "[dce]") {
  const Graph graph = graph_of(
      "%0 x: f32[4,3], %1 y: f32[3]",
      "%2: f32[] = constant {value=2.0}; %3: f32[] = mul %2, %2; %4: f32[4,3] = expand %3; "
      "%5: f32[4,3] = div %0, %4; %6: f32[4,3] = expand %1; %7: f32[4,3] = add %5, %6; "
      "%8: f32[4,3] = expand %1; %9: f32[4,3] = add %8, %5; %10: f32[4,3] = neg %9; %11: "
      "f32[4,3] = neg %10; %12: f32[4,3] = mul %11, %7; %13: f32[4] = sum %12 {axes=[1]}; "
      "return %13");
  const Graph once = dce(cse(fold(simplify(graph)))), twice = dce(cse(fold(simplify(once)))),
              thrice = dce(cse(fold(simplify(twice))));
  INFO(print(twice));
  CHECK(agree(graph, once));
  CHECK(agree(graph, twice));
  CHECK(print(twice) == print(thrice));
  CHECK(twice.size() == 8);
}
