// Symbolic sizes, through every stage that can take them.
#include <set>
#include <string>
#include <vector>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/schedule/policy.h"

#include "tests/loops/symbolic_cases.h"
#include "tests/loops/symbolic_stages.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<int64_t> kSizes = {1, 2, 37, 1024, 4096};
const std::vector<int64_t> kSmallSizes = {1, 2, 37};  // where large ones say nothing new

// The call that n = 0 makes of the graph.
std::vector<Tensor> empty_inputs(const Graph& graph) {
  return seeded_inputs(substitute(graph, bind_sizes(symbols(graph), {{"n", 0}})), 7, {});
}

Graph softmax_of(const std::string& n) {
  return parse_graph(str("graph f[", n, ": 1..4096](%0 x: f32[", n, ",8]) {\n", R"(
    %1: f32[N,1] = max %0 {axes=[1], keepdim=1}
    %2: f32[N,8] = expand %1
    %3: f32[N,8] = sub %0, %2
    %4: f32[N,8] = exp %3
    %5: f32[N,1] = sum %4 {axes=[1], keepdim=1}
    %6: f32[N,8] = expand %5
    %7: f32[N,8] = div %4, %6
    %8: f32[8] = max %7 {axes=[0]}
    %9: f32[8,N] = permute %7 {axes=[1,0]}
    %10: f32[N*8] = reshape %9
    return %7, %8, %10
  })"));
}

}  // namespace

TEST_CASE("symbols of two kinds are two symbols, whatever their name", "[sizes]") {
  const Expr size = Expr::symbol({"i0", SymbolKind::Size}, 0, 7), row = Expr::index("i0", 8);
  CHECK(size.bounds() == row.bounds());
  CHECK(size != row);
  CHECK((size + row).size() == 3);
  CHECK(substitute(size * 8 + row, {{"i0", 3}}) == size * 8 + 3);
  CHECK(substitute(size * 8 + row, {{{"i0", SymbolKind::Size}, 3}}) == row + 24);
  CHECK_FALSE(depends_on(size, "i0"));
  CHECK(depends_on(size, {"i0", SymbolKind::Size}));
}

TEST_CASE("a graph's symbols are sizes", "[sizes]") {
  Graph graph = parse_graph("graph f[n: 1..8](%0 x: f32[n]) {\nreturn %0\n}\n");
  graph.nodes[0].type.shape = {Expr::index("i0", 8)};
  CHECK_THROWS_WITH(verify(graph), ContainsSubstring("i0 is no size"));
}

TEST_CASE("each op is verified, printed, parsed, lowered and run on n", "[sizes]") {
  for (const SymbolicCase& one : kSymbolicCases) {
    CAPTURE(one.op);
    check_stages(graph_of(one), kSizes);
  }
}

// 4096 would be 17 million dots a run, each three seconds in an interpreter.
TEST_CASE("a product of n by n is n times n dots", "[sizes]") {
  const char* square =
      "%2: f32[n,n] = matmul %0, %1\n%3: f32[n] = sum %2 {axes=[1]}\nreturn %3";
  check_stages(graph_of({"matmul", "%0 x: f32[n,4], %1 y: f32[4,n]", square}),
               {1, 2, 37, 1024});
}

// max, min, argmax and argmin of no elements are none, no index is one of no rows, and a window of
// 3 does not fit 2.
TEST_CASE("each op has the bits of numbers where n may be 0", "[sizes]") {
  const std::set<std::string> impossible = {"max", "argmax", "argmin", "gather"};
  for (const SymbolicCase& one : kSymbolicCases) {
    CAPTURE(one.op, one.body);
    const Graph graph = graph_of(one, 0);
    check_stages(graph, {1, 37});
    try {
      interpret(graph, empty_inputs(graph));
    } catch (const Error&) {
      if (std::string(one.op) == "window") continue;
      CHECK(impossible.count(one.op) == 1);
      for (const Program& program : {lower(graph), plan_memory(schedule(fuse(lower(graph))))})
        CHECK_THROWS_AS(interpret(program, empty_inputs(graph)), Error);
      continue;
    }
    check_stages(graph, {0});
  }
}

TEST_CASE("a program of no rows has no kernels, and its outputs no elements", "[sizes]") {
  const Program sums =
      lower(parse_graph("graph f[n: 0..8](%0 x: f32[n,3]) {\n  %1: f32[3] = sum %0 {axes=[0]}\n"
                        "  %2: f32[n,3] = exp %0\n  return %1, %2\n}\n"));
  const Program none = substitute(sums, {{{"n", SymbolKind::Size}, 0}});
  REQUIRE_NOTHROW(verify(none));
  CHECK(print(none) == R"(program f {
  input x: f32[0,3]
  output y1: f32[3]
  output y2: f32[0,3]
  kernel sum_1 rows(i0: 3) {
    store y1[i0] = f32 0.0
  }
  launch sum_1
  return y1, y2
}
)");
}

TEST_CASE("each op class has a symbolic case", "[sizes]") {
  for (int i = 0; i < kOpCount; i++) {
    const Op op = static_cast<Op>(i);
    if (is_pointwise(op) || op == Op::input || op == Op::item) continue;
    CAPTURE(info(op).name);
    CHECK(std::any_of(
        kSymbolicCases.begin(), kSymbolicCases.end(),
        [&](const SymbolicCase& one) { return std::string(one.op) == info(op).name; }));
  }
}

TEST_CASE("each pointwise op of the table keeps n", "[sizes]") {
  for (int i = 0; i < kOpCount; i++) {
    const Op op = static_cast<Op>(i);
    if (!is_pointwise(op) || op == Op::cast) continue;
    const bool integers = info(op).domain == Domain::Integer || info(op).domain == Domain::Bits;
    Graph graph = parse_graph(str("graph f[n: 1..4096](%0 x: ", integers ? "i32" : "f32",
                                  "[n,3], %1 c: bool[n,3]) {\nreturn %0\n}\n"));
    Node node;
    node.op = op;
    node.inputs.assign(static_cast<size_t>(info(op).arity), 0);
    if (info(op).domain == Domain::Where) node.inputs[0] = 1;
    std::vector<Type> types;
    for (const int input : node.inputs) types.push_back(graph[input].type);
    node.type = infer(node, types);
    graph.outputs = {graph.append(node)};
    CAPTURE(info(op).name);
    check_stages(graph, kSizes);
  }
}

// What is known of n, at most 4096, is that the slice ends at 4.
TEST_CASE("an index may go down for sizes that no call has", "[sizes]") {
  check_stages(parse_graph("graph f[n: 1..4096](%0 x: f32[4,3], %1 y: f32[n]) {\n"
                           "  %2: f32[n,3] = slice %0 {axis=0, start=4 - n, stop=4, step=1}\n"
                           "  %3: f32[n,3] = flip %2 {axes=[0]}\n  return %3, %1\n}\n"),
               {1, 3, 4});
}

TEST_CASE("an index may be divided by a size that no call has", "[sizes]") {
  check_stages(
      parse_graph("graph f[n: 0..4096](%0 x: f32[n]) {\n  %1: f32[n] = flip %0 {axes=[0]}\n"
                  "  %2: f32[7] = slice %1 {axis=0, start=22, stop=29, step=1}\n"
                  "  %3: f32[2] = slice %2 {axis=0, start=2, stop=6, step=3}\n"
                  "  %4: f32[n] = neg %0\n  return %3, %4\n}\n"),
      {29, 57});
}

TEST_CASE("sizes may be called like rows, loops and places", "[sizes]") {
  for (const char* name : {"n", "i0", "i1", "j0", "at0", "v0", "e", "x0", "r0", "min"}) {
    std::string text = print(softmax_of("N"));
    for (size_t at = 0; (at = text.find('N', at)) != std::string::npos;)
      text.replace(at, 1, name);
    CAPTURE(text);
    check_stages(parse_graph(text), kSmallSizes);
    check_stages(simplify(fold(parse_graph(text))), {5});
  }
}

TEST_CASE("a program's loop is not called like a size", "[sizes]") {
  const std::string text = print(lower(graph_of(kSymbolicCases[0])));
  std::string size_like = text, loop_like = text;
  size_like.replace(size_like.find("i0: n"), 2, "n");
  CHECK_THROWS_WITH(parse_program(size_like), ContainsSubstring("n is a size"));
  for (size_t at = 0; (at = loop_like.find("n", at)) != std::string::npos; at++) {
    const bool is_size = loop_like[at - 1] == '[' || loop_like.substr(at - 2, 2) == ": ";
    if (is_size) loop_like.replace(at, 1, "j0");
  }
  CHECK_THROWS_WITH(parse_program(loop_like), ContainsSubstring("is called j0, like a loop"));
}

TEST_CASE("kernels of symbolic sizes fuse as those of numbers do", "[sizes][fuse]") {
  const Graph softmax = softmax_of("N");
  const Program fused = fuse(lower(softmax));
  CHECK(fused.kernels.size() ==
        fuse(lower(substitute(softmax, bind_sizes(symbols(softmax), {{"N", 37}}))))
            .kernels.size());
  const Program cut = fuse(lower(parse_graph(
      "graph f[n: 1..9, m: 1..9](%0 x: f32[n,m,8]) {\n  %1: f32[n,m,8] = exp %0\n"
      "  %2: f32[n*m*8] = reshape %1\n  %3: f32[n*m*8] = abs %2\n  return %3\n}\n")));
  CHECK(cut.kernels.size() == 1);
  const Program apart = fuse(
      lower(parse_graph("graph f[n: 1..9, m: 1..9](%0 x: f32[n,m], %1 y: f32[m,n]) {\n"
                        "  %2: f32[n] = sum %0 {axes=[1]}\n  %3: f32[m] = sum %1 {axes=[1]}\n"
                        "  return %2, %3\n}\n")));
  CHECK(apart.kernels.size() == 2);
}

TEST_CASE("sizes follow from the inputs, or the call says which do not fit", "[sizes]") {
  const Graph graph = parse_graph(
      "graph f[n: 2..64, m: 1..64](%0 x: f32[n*2 + 1], %1 y: f32[m,n]) {\nreturn %0, %1\n}\n");
  const auto call = [&](const Sizes& x, const Sizes& y) {
    return interpret(graph, std::vector{filled_tensor(Literal::of(DType::f32, 1), x),
                                        filled_tensor(Literal::of(DType::f32, 1), y)});
  };
  CHECK_NOTHROW(call({75}, {5, 37}));
  CHECK_THROWS_WITH(call({76}, {5, 37}), ContainsSubstring("input x is f32[75]"));
  CHECK_THROWS_WITH(call({75}, {5, 36}), ContainsSubstring("input y is f32[5,37]"));
  CHECK_THROWS_WITH(call({3}, {5, 1}), ContainsSubstring("n is 1, which is not in 2..64"));
  const Graph hidden = parse_graph("graph f[n: 2..64](%0 x: f32[n*n]) {\nreturn %0\n}\n");
  CHECK_THROWS_WITH(
      interpret(hidden, std::vector{filled_tensor(Literal::of(DType::f32, 1), {9})}),
      ContainsSubstring("n does not follow from the inputs' shapes"));
}

namespace {

std::vector<int> float_inputs(const Graph& graph) {
  std::vector<int> result;
  const std::vector<int> inputs = graph.inputs();
  for (size_t k = 0; k < inputs.size(); k++)
    if (is_float(graph[inputs[k]].type.dtype)) result.push_back(static_cast<int>(k));
  return result;
}

}  // namespace

TEST_CASE("each op's derivative goes through every stage on n", "[sizes][derivatives]") {
  for (const SymbolicCase& one : kSymbolicCases) {
    CAPTURE(one.op);
    const Graph graph = graph_of(one);
    check_stages(vjp(graph, float_inputs(graph)), kSizes);
  }
}
