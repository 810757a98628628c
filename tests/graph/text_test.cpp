#include "tiny_compile/graph/graph.h"

#include <cstdint>
#include <set>

#include "tests/catch.h"
#include "tests/graph/every_op.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string message_of(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Graph with_body(const std::string& body) {
  return parse_graph("graph f(%0 x: f32[2,3]) {\n" + body + "\n}");
}

std::string message_of_body(const std::string& body) {
  return message_of("graph f(%0 x: f32[2,3]) {\n" + body + "\n}\n");
}

}  // namespace

TEST_CASE("a graph's text parses back to an equal graph, for every op") {
  std::set<Op> seen;
  for (const std::string& text : tests::valid_graphs()) {
    const Graph graph = parse_graph(text);
    const std::string printed = print(graph);
    CAPTURE(printed);
    CHECK(parse_graph(printed) == graph);
    CHECK(print(parse_graph(printed)) == printed);
    for (const Node& node : graph.nodes) seen.insert(node.op);
  }
  CHECK(seen.size() == static_cast<size_t>(kOpCount));
}

TEST_CASE("a graph prints in one form, comments in a column") {
  const std::string text = R"(graph gelu_bias(%0 x: f32[4096,1024], %1 bias: f32[1024]) {
  %2: f32[4096,1024] = expand %1   # mlp.cpp:14
  %3: f32[4096,1024] = add %0, %2  # mlp.cpp:14
  %4: f32[4096,1024] = gelu %3     # fuse
  return %4
}
)";
  CHECK(print(parse_graph(text)) == text);
}

TEST_CASE("spelling is free where the meaning is clear") {
  const Graph graph = parse_graph(R"(
    # two inputs
    graph f [ n : 1..8 , m ] (
        %0  x : f32[ n , 2 ] { strides = [2, 1] },   # the first
        %1 k: i64 [] {} )
    {
      # a remark of several words is no place
      %2: f32[2,n]=permute %0{axes=[1,0]}  # swap the axes

      %3: f32[2,n] = neg %2# here:7
      return %3 , %1 }
    # the end
  )");
  CHECK(graph.size() == 4);
  CHECK(graph[2].where == Location{});
  CHECK(graph[3].where == Location{"here", 7});
  CHECK(graph[0].type.shape[0] == Expr::symbol({"n", SymbolKind::Size}, 1, 8));
  CHECK(graph.outputs == std::vector<int>{3, 1});
}

TEST_CASE("places do not count for equality, names do") {
  const Graph plain = with_body("%1: f32[2,3] = neg %0\nreturn %1");
  CHECK(with_body("%1: f32[2,3] = neg %0 # a.cpp:3\nreturn %1") == plain);
  CHECK_FALSE(parse_graph("graph f(%0 y: f32[2,3]) {\n%1: f32[2,3] = neg %0\nreturn %1}") ==
              plain);
}

TEST_CASE("a printed place is the file's base name") {
  Graph graph = with_body("%1: f32[2,3] = neg %0\nreturn %1");
  graph.nodes[1].where = {"/home/me/mlp.cpp", 14};
  CHECK(print(graph, 1) == "%1: f32[2,3] = neg %0  # mlp.cpp:14");
  graph.nodes[1].where = {"a\nreturn", 0};
  CHECK(parse_graph(print(graph)) == graph);
  graph.nodes[1].where = {"mlp.cpp", 14};
  CHECK(parse_graph(print(graph))[1].where == graph[1].where);
}

TEST_CASE("one node prints as a line, an input too") {
  const Graph graph = parse_graph("graph f(%0 x: f32[2] {strides=[3]}) {\n return }");
  CHECK(print(graph, 0) == "%0: f32[2] = input x {strides=[3]}");
}

TEST_CASE("symbols print with their bounds, in order of appearance") {
  const Graph graph =
      parse_graph("graph f[unused, a, b: -3..7](%0 x: f32[max(b, 1),a]) {\n return %0\n}");
  CHECK_THAT(print(graph), ContainsSubstring("graph f[b: -3..7, a: 0..1099511627776](%0"));
  CHECK(symbols(graph).size() == 2);
  CHECK(parse_graph(print(graph)) == graph);
}

TEST_CASE("a long header takes a line a parameter") {
  std::string header = "graph long(";
  for (int i = 0; i < 6; i++) {
    header += str(i ? ", " : "", "%", i, " parameter_", i, ": f32[16]");
  }
  const std::string printed = print(parse_graph(header + ") { return }"));
  CHECK_THAT(printed, ContainsSubstring("long(\n    %0 parameter_0: f32[16],\n    %1 "));
}

TEST_CASE("constants keep their bits") {
  const Graph graph = parse_graph(R"(graph f() {
  %0: f32[] = constant {value=-0.0}
  %1: f32[3] = constant {value=1e-45}
  %2: f64[] = constant {value=0.1}
  %3: u64[] = constant {value=18446744073709551615}
  %4: i64[] = constant {value=-9223372036854775808}
  %5: bool[] = constant {value=true}
  %6: bf16[] = constant {value=nan}
  %7: f16[] = constant {value=-inf}
  return %0
})");
  CHECK(graph[0].value.bits == 0x80000000);
  CHECK(graph[1].value.bits == 1);
  CHECK(graph[3].value.bits == UINT64_MAX);
  CHECK(graph[4].value.bits == uint64_t{1} << 63);
  CHECK(graph[7].value.bits == 0xfc00);
  CHECK(parse_graph(print(graph)) == graph);
}

TEST_CASE("an error shows the line and a caret") {
  CHECK(message_of("graph f(%0 x: f32[4]) {\n  %1: f32[4] = addd %0, %0\n  return %1\n}") ==
        "line 2, column 16: unknown op 'addd'; did you mean 'add'?\n"
        "    %1: f32[4] = addd %0, %0\n"
        "                 ^");
}

TEST_CASE("an error of types points at its node") {
  CHECK_THAT(message_of_body("  %1: f32[2,3] = neg %0\n  %2: f32[3] = add %0, %0\n return %1"),
             ContainsSubstring("line 3, column 3: add: the result is f32[2,3], not f32[3]"));
}

TEST_CASE("malformed bodies are refused with a reason") {
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"%1: f32[2,3] = frobnicate %0\nreturn %1", "unknown op 'frobnicate'"},
      {"%1: f32[2,3] = \nreturn %1", "expected an op"},
      {"%1: f32[2,3] = add %0, %7\nreturn %1", "%7 is not defined; so far there are %0..%0"},
      {"%1: f32[2,3] = neg %1\nreturn %1", "%1 is not defined"},
      {"%0: f32[2,3] = neg %0\nreturn %0", "%0 is already defined"},
      {"%2: f32[2,3] = neg %0\nreturn %2", "%2 is out of order"},
      {"%1: f23[2,3] = neg %0\nreturn %1", "unknown dtype 'f23'; did you mean"},
      {"%1: [2,3] = neg %0\nreturn %1", "expected a type"},
      {"%1: f32 = neg %0\nreturn %1", "expected '[' after the dtype"},
      {"%1: f32[2,3 = neg %0\nreturn %1", "expected ']' after the list"},
      {"%1: f32[2,] = neg %0\nreturn %1", "expected a size"},
      {"%1: f32[2,n] = neg %0\nreturn %1", "unknown size 'n'; declare it"},
      {"%1 f32[2,3] = neg %0\nreturn %1", "expected ':'"},
      {"%1: f32[2,3] neg %0\nreturn %1", "expected '='"},
      {"%1: f32[2,3] = neg %0 %0\nreturn %1", "expected the end of the line"},
      {"%1: f32[2,3] = neg %0,\nreturn %1", "expected '%'"},
      {"%1: f32[2,3] = neg\nreturn %1", "takes 1 operand, here are 0"},
      {"%1: f32[3] = sum %0 {axis=0}\nreturn %1", "no attribute 'axis'; did you mean 'axes'?"},
      {"%1: f32[3] = sum %0 {axes=0}\nreturn %1", "expected '['"},
      {"%1: f32[3] = sum %0 {axes=[0], axes=[0]}\nreturn %1", "'axes' is given twice"},
      {"%1: f32[3] = sum %0 {axes=[0]\nreturn %1", "expected '}'"},
      {"%1: f32[3] = sum %0 {axes [0]}\nreturn %1", "expected '='"},
      {"%1: f32[3] = sum %0\nreturn %1", "needs attribute axes"},
      {"%1: f32[] = constant\nreturn %1", "{value=0.5}"},
      {"%1: f32[] = constant {value=half}\nreturn %1", "half"},
      {"%1: f32[] = constant {value=1, value=2}\nreturn %1", "'value' is given twice"},
      {"%1: f32[] = input\nreturn %1", "expected the input's name"},
      {"%1: f32[] = input x\nreturn %1", "the name 'x' is taken"},
      {"return %1", "%1 is not defined"},
      {"return %0,", "expected '%'"},
      {"%1: f32[2,3] = neg %0", "expected a node"},
      {"%1: f32[99999999999999999999] = neg %0\nreturn", "does not fit 64 bits"},
      {"%99999999999999999999: f32[2,3] = neg %0\nreturn", "does not fit 64 bits"},
      {"%1: f32[4611686018427387904*4611686018427387904] = neg %0\nreturn", "64 bits"},
      {"%1: f32[4611686018427387904,4] = reshape %0\nreturn", "more than 2^48 elements"},
      {"%1: f32[16777216,16777216,2,3] = expand %0\nreturn", "more than 2^48"},
      {"%1: f32[-1] = reshape %0\nreturn", "is negative"}};
  for (const auto& [body, reason] : bodies) {
    CAPTURE(body);
    CHECK_THAT(message_of_body(body), ContainsSubstring(reason));
  }
}

TEST_CASE("malformed headers and footers are refused with a reason") {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", "a graph starts with"},
      {"grph f() { return }", "a graph starts with"},
      {"graph () { return }", "expected the graph's name"},
      {"graph 2f() { return }", "expected the graph's name"},
      {"graph f { return }", "expected '('"},
      {"graph f(%0: f32[]) { return }", "expected the input's name"},
      {"graph f(%1 x: f32[]) { return }", "%1 is out of order"},
      {"graph f(%0 x: f32[], %1 x: f32[]) { return }", "'x' is taken"},
      {"graph f(%0 x: f32[],) { return }", "expected '%'"},
      {"graph f(%0 x: f32[] { return }", "input has no attribute 'return'"},
      {"graph f(%0 x: f32[]", "expected ')'"},
      {"graph f() return", "expected '{'"},
      {"graph f() {", "the graph ends without"},
      {"graph f() { return", "expected '}'"},
      {"graph f() { return } graph g() { return }", "one graph"},
      {"graph f[n: 1..2, n](%0 x: f32[n]) { return }", "n is declared twice"},
      {"graph f[n: 5..2](%0 x: f32[n]) { return }", "the bounds of n are empty"},
      {"graph f[n: 5](%0 x: f32[n]) { return }", "bounds are written 2..4096"},
      {"graph f[n: 0..9223372036854775807](%0 x: f32[n]) { return }", "beyond 2^62"},
      {"graph f[n.m](%0 x: f32[n]) { return }", "a size's name holds no '.'"},
      {"graph f[2](%0 x: f32[n]) { return }", "expected the name of a size"},
      {"graph f[n: -9..-1](%0 x: f32[n]) { return }", "is negative"},
      {"graph f(%0 x: f32[4] {strides=[1,1]}) { return }", "2 strides for f32[4]"}};
  for (const auto& [text, reason] : texts) {
    CAPTURE(text);
    CHECK_THAT(message_of(text), ContainsSubstring(reason));
  }
}

TEST_CASE("deep nesting in a size is an error, not a crash") {
  const std::string deep(100000, '(');
  CHECK_THAT(message_of("graph f(%0 x: f32[" + deep + "]) { return }"),
             ContainsSubstring("nested deeper"));
}
