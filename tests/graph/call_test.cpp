// A node that holds a graph: its text, what is wrong with it and where, what it means.
#include "tests/catch.h"
#include "tests/graph/hand_case.h"
#include "tiny_compile/graph/graph.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

const char kStatistics[] = R"(graph f(%0 x: f32[2,3]) {
  %1: (f32[2], i64[2]) = call %0 {          # model.cpp:7
    graph greatest(%0 row: f32[2,3]) {
      %1: f32[2] = max %0 {axes=[1]}     # model.cpp:3
      %2: i64[2] = argmax %0 {axes=[1]}  # model.cpp:4
      return %1, %2
    }
  }
  %2: i64[2] = item %1 {index=1}
  %3: f32[2] = item %1 {index=0}
  return %2, %3
}
)";

std::string message_of(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kStatistics;
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

std::string message_with(const std::string& from, const std::string& to) {
  return message_of(replaced(from, to));
}

std::string nested(int depth) {
  std::string text = "graph f(%0 x: f32[2]) {\n";
  for (int i = 1; i < depth; i++) text += "%1: (f32[2]) = call %0 {\ngraph g(%0 x: f32[2]) {\n";
  text += "%1: f32[2] = exp %0\nreturn %1\n}\n";
  for (int i = 1; i < depth; i++) text += "}\n%2: f32[2] = item %1 {index=0}\nreturn %2\n}\n";
  return text;
}

}  // namespace

TEST_CASE("a call prints with its graph inside, and parses back equal", "[call]") {
  const Graph graph = parse_graph(kStatistics);
  REQUIRE(graph[1].graphs.size() == 1);
  CHECK(graph[1].where.str() == "model.cpp:7");
  CHECK(graph[1].graphs[0][2].where.str() == "model.cpp:4");
  CHECK(parse_graph(print(graph)) == graph);
  CHECK(print(parse_graph(print(graph))) == print(graph));
}

TEST_CASE("graphs that differ inside are not equal", "[call]") {
  const Graph graph = parse_graph(kStatistics);
  CHECK_FALSE(parse_graph(replaced("max %0", "min %0")) == graph);
  CHECK_FALSE(same_computation(parse_graph(replaced("max %0", "min %0"))[1], graph[1]));
}

TEST_CASE("a call gives what its graph gives on the operands", "[call]") {
  const Graph graph = parse_graph(kStatistics);
  const std::vector<Tensor> inputs = {tensor_of(DType::f32, {2, 3}, "1 5 2  nan 0 7")};
  const std::vector<Tensor> outputs = interpret(graph, inputs);
  CHECK(same_bits(outputs[0], tensor_of(DType::i64, {2}, "1 0")));
  CHECK(same_bits(outputs[1], tensor_of(DType::f32, {2}, "5 nan")));
}

TEST_CASE("an error inside a call names the line inside", "[call]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: i32[1], %1 y: i32[1]) {
  %2: (i32[1]) = call %0, %1 {  # model.cpp:9
    graph divide(%0 a: i32[1], %1 b: i32[1]) {
      %2: i32[1] = floor_divide %0, %1  # model.cpp:3
      return %2
    }
  }
  %3: i32[1] = item %2 {index=0}
  return %3
})");
  const std::vector<Tensor> inputs = {tensor_of(DType::i32, {1}, "1"),
                                      tensor_of(DType::i32, {1}, "0")};
  CHECK_THROWS_WITH(interpret(graph, inputs), ContainsSubstring("model.cpp:3"));
}

TEST_CASE("what does not fit a call is refused at its line", "[call]") {
  CHECK_THAT(message_with("row: f32[2,3]", "row: f32[3,2]"),
             StartsWith("line 4, column 7: max: the result is f32[3], not f32[2]"));
  CHECK_THAT(message_with("call %0 {", "call {"),
             ContainsSubstring("graph greatest has 1 inputs, here are 0 operands"));
  CHECK_THAT(message_with("(f32[2], i64[2])", "(f32[2], i32[2])"),
             ContainsSubstring("the result is (f32[2], i64[2]), not (f32[2], i32[2])"));
  CHECK_THAT(message_with("(f32[2], i64[2])", "f32[2]"),
             ContainsSubstring("the result is (f32[2], i64[2]), not f32[2]"));
  CHECK_THAT(message_with("return %1, %2", "return"),
             ContainsSubstring("graph greatest returns nothing"));
  CHECK_THAT(message_with("row: f32[2,3]", "row: f32[2,3] {align=4}"),
             ContainsSubstring("input row has align; only inputs of the outermost graph do"));
  CHECK_THAT(message_with("greatest(", "greatest[n: 1..4]("),
             ContainsSubstring("uses the sizes that the outermost declares"));
  CHECK_THAT(message_with("max %0", "max %9"), ContainsSubstring("%9 is not defined"));
}

TEST_CASE("only item reads a tuple", "[call]") {
  CHECK_THAT(message_with("return %2, %3", "return %1"),
             ContainsSubstring("output %1 is a tuple; return its results, read with item"));
  CHECK_THAT(message_with("item %1 {index=0}", "neg %1"),
             ContainsSubstring("operand %1 is a tuple; read one of its results with item"));
  CHECK_THAT(message_with("item %1 {index=0}", "item %0 {index=0}"),
             ContainsSubstring("takes a tuple, the results of a call"));
  CHECK_THAT(message_with("{index=0}", "{index=2}"),
             ContainsSubstring("index 2 is not one of the results 0..1"));
  CHECK_THAT(message_with("{index=0}", "{index=-1}"), ContainsSubstring("counts from 0"));
  CHECK_THAT(message_of("graph f(%0 x: (f32[2])) {\n return\n}"),
             ContainsSubstring("makes a tensor, not the tuple (f32[2])"));
}

TEST_CASE("a graph built in memory is verified inside as well", "[call]") {
  Graph graph = parse_graph(kStatistics);
  graph.nodes[1].graphs[0].nodes[1].inputs = {2};
  const std::optional<Problem> problem = find_problem(graph);
  REQUIRE(problem);
  CHECK(problem->node == 1);
  CHECK_THAT(problem->message, StartsWith("in graph greatest: max: operand %2 is not defined"));
  graph = parse_graph(kStatistics);
  graph.nodes[2].graphs = graph[1].graphs;
  CHECK_THAT(find_problem(graph)->message, StartsWith("item: holds 0 graphs, not 1"));
  graph.nodes[2].graphs.clear();
  graph.nodes[1].graphs.clear();
  CHECK_THAT(find_problem(graph)->message, StartsWith("call: holds 1 graph, not 0"));
}

TEST_CASE("graphs are 16 deep at most, whether from text or memory", "[call]") {
  CHECK(message_of(nested(16)) == "no error");
  CHECK_THAT(message_of(nested(17)), ContainsSubstring("more than 16 graphs deep"));
  CHECK_THAT(message_of(nested(100000)), ContainsSubstring("more than 16 graphs deep"));
  Graph outer = parse_graph(nested(2));
  outer.nodes[1].graphs[0] = parse_graph(nested(16));
  CHECK_THAT(find_problem(outer)->message, ContainsSubstring("more than 16 graphs deep"));
}
