#include "tests/catch.h"
#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/graph/graph.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

// x: f32[2,3], y: f32[2,3], x + y
Graph sum_graph() {
  return parse_graph(R"(graph f(%0 x: f32[2,3], %1 y: f32[2,3]) {
  %2: f32[2,3] = add %0, %1
  %3: f32[3] = sum %2 {axes=[0]}
  return %3
})");
}

std::string message_of(const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a valid graph verifies, one without nodes or outputs too") {
  CHECK(message_of(sum_graph()) == "no error");
  CHECK(message_of(Graph{}) == "no error");
  CHECK_FALSE(find_problem(sum_graph()));
}

TEST_CASE("an error names the place, the problem and the node's line") {
  Graph graph = sum_graph();
  graph.nodes[2].where = {"mlp.cpp", 14};
  graph.nodes[2].inputs = {0};
  CHECK(message_of(graph) ==
        "mlp.cpp:14: add: takes 2 operands, here is 1\n"
        "  in %2: f32[2,3] = add %0  # mlp.cpp:14");
}

TEST_CASE("operands are defined before their users") {
  for (const int input : {2, 3, 99, -1}) {
    Graph graph = sum_graph();
    graph.nodes[2].inputs[1] = input;
    CHECK_THAT(message_of(graph), StartsWith(str("add: operand %", input, " is not defined")));
  }
}

TEST_CASE("a node's type is the one its operands give") {
  Graph graph = sum_graph();
  graph.nodes[2].type.dtype = DType::f64;
  CHECK_THAT(message_of(graph), StartsWith("add: the result is f32[2,3], not f64[2,3]"));
  CHECK(find_problem(graph)->node == 2);
}

TEST_CASE("attributes are exactly those of the op") {
  Graph extra = sum_graph(), missing = sum_graph(), empty = sum_graph(), twice = sum_graph();
  extra.nodes[2].set(Key::axis, {0});
  CHECK_THAT(message_of(extra), StartsWith("add: has no attribute axis"));
  missing.nodes[3].attrs.clear();
  CHECK_THAT(message_of(missing), StartsWith("sum: needs attribute axes"));
  empty.nodes[3].set(Key::keepdim, {});
  CHECK_THAT(message_of(empty), StartsWith("sum: keepdim takes one value"));
  twice.nodes[3].attrs.push_back(twice.nodes[3].attrs[0]);
  CHECK_THAT(message_of(twice), StartsWith("sum: attribute axes is repeated"));
}

TEST_CASE("an attribute that counts must be an integer in range") {
  Graph symbolic = sum_graph(), zero = sum_graph(), absurd = sum_graph();
  symbolic.nodes[3].set(Key::axes, {Expr::symbol("n", 0, 1)});
  CHECK_THAT(message_of(symbolic), StartsWith("sum: axes must be an integer, not n"));
  zero.nodes[3].set(Key::keepdim, {0});
  CHECK_THAT(message_of(zero), StartsWith("sum: keepdim is 1 or left out"));
  absurd.nodes[3].set(Key::axes, {int64_t{1} << 60});
  CHECK_THAT(message_of(absurd), ContainsSubstring("is beyond 2^48"));
}

TEST_CASE("only inputs have names, and each its own") {
  Graph same = sum_graph(), odd = sum_graph(), none = sum_graph(), named = sum_graph();
  same.nodes[1].name = "x";
  CHECK_THAT(message_of(same), StartsWith("input: the name 'x' is taken"));
  odd.nodes[1].name = "a b";
  CHECK_THAT(message_of(odd), StartsWith("input: 'a b' is no name"));
  none.nodes[1].name = "";
  CHECK_THAT(message_of(none), StartsWith("input: '' is no name"));
  named.nodes[2].name = "z";
  CHECK_THAT(message_of(named), StartsWith("add: only an input has a name"));
}

TEST_CASE("only constants and paddings hold a value, of well-formed bits") {
  Graph stray = sum_graph(), wide = sum_graph();
  stray.nodes[2].value = Literal::of(DType::f32, 1);
  CHECK_THAT(message_of(stray), StartsWith("add: holds no value"));
  Node constant;
  constant.op = Op::constant;
  constant.type = {DType::boolean, {}};
  constant.value = Literal{DType::boolean, 2};
  wide.append(constant);
  CHECK_THAT(message_of(wide), ContainsSubstring("make it with Literal::of"));
  wide.nodes.back().value = Literal::of(DType::f32, 1);
  CHECK_THAT(message_of(wide), StartsWith("constant: the value is f32, the type bool[]"));
}

TEST_CASE("outputs are nodes, the graph has a name") {
  Graph output = sum_graph(), name = sum_graph();
  output.outputs.push_back(4);
  CHECK_THAT(message_of(output), StartsWith("output %4 is no node"));
  name.name = "two words";
  CHECK_THAT(message_of(name), StartsWith("'two words' is no name for a graph"));
}

TEST_CASE("a symbol has one pair of bounds") {
  Graph graph;
  for (const int64_t high : {8, 9}) {
    Node input;
    input.name = str("x", high);
    input.type.shape = {Expr::symbol({"n", SymbolKind::Size}, 0, high)};
    graph.append(input);
  }
  CHECK(message_of(graph) == "the size n has two different bounds");
}

TEST_CASE("identifiers start with a letter or underscore") {
  CHECK(is_identifier("_layer.0.weight"));
  CHECK_FALSE(is_identifier("0x"));
  CHECK_FALSE(is_identifier(".x"));
  CHECK_FALSE(is_identifier(""));
  CHECK_FALSE(is_identifier("é"));
}
