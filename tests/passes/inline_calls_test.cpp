// Calls and what becomes of them: passes keep to one side, lower sees none.
#include "tests/fuzz/outline.h"
#include "tests/fuzz/random_graph.h"
#include "tests/passes/rewrites.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/lower.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

// y = f(f(x)), f(x) = exp(x) + exp(x), one f in the other
const char kNested[] = R"(graph g(%0 x: f32[4]) {
  %1: (f32[4]) = call %0 {  # a.cpp:9
    graph twice(%0 x: f32[4]) {
      %1: (f32[4]) = call %0 {
        graph once(%0 x: f32[4]) {
          %1: f32[4] = exp %0  # a.cpp:1
          %2: f32[4] = exp %0  # a.cpp:2
          %3: f32[4] = add %1, %2
          return %3
        }
      }
      %2: f32[4] = item %1 {index=0}
      return %2
    }
  }
  %2: f32[4] = item %1 {index=0}
  %3: f32[4] = neg %2
  return %3
}
)";

}  // namespace

TEST_CASE("an inlined call is its graph's nodes, with their places or the call's", "[call]") {
  CHECK(print(inline_calls(parse_graph(kNested))) == R"(graph g(%0 x: f32[4]) {
  %1: f32[4] = exp %0      # a.cpp:1
  %2: f32[4] = exp %0      # a.cpp:2
  %3: f32[4] = add %1, %2  # a.cpp:9
  %4: f32[4] = neg %3
  return %4
}
)");
}

TEST_CASE("a result that is an operand is that operand", "[call]") {
  const Graph graph = parse_graph(R"(graph g(%0 x: f32[4], %1 y: f32[4]) {
  %2: (f32[4], f32[4]) = call %0, %1 {
    graph swap(%0 a: f32[4], %1 b: f32[4]) {
      return %1, %0
    }
  }
  %3: f32[4] = item %2 {index=0}
  %4: f32[4] = sub %3, %0
  return %3, %4
})");
  CHECK(print(inline_calls(graph)) == R"(graph g(%0 x: f32[4], %1 y: f32[4]) {
  %2: f32[4] = sub %1, %0
  return %1, %2
}
)");
}

TEST_CASE("a stage's pass runs on the graphs inside as well", "[call]") {
  const Graph graph = parse_graph(kNested);
  const Staged staged = run_pipeline(until(default_pipeline(), "cse"), graph, true);
  const Graph& once = staged.graph[1].graphs[0][1].graphs[0];
  CHECK(once.size() == 3);  // the second exp is gone
  CHECK(graph[1].graphs[0][1].graphs[0].size() == 4);
}

TEST_CASE("equal calls are one, different ones are two", "[call]") {
  Graph graph = outline(graph_of("%0 x: f32[2]",
                                 "%1: f32[2] = exp %0; %2: f32[2] = exp %0; "
                                 "%3: f32[2] = add %1, %2; return %3"),
                        1, 2);
  graph = outline(graph, 3, 4);
  CHECK(cse(graph).size() == graph.size() - 2);  // a call and its item
  graph.nodes[3].graphs[0].nodes[1].op = Op::log;
  CHECK(cse(graph).size() == graph.size());
}

TEST_CASE("an outlined part means the same, inlined again it is the same graph", "[call]") {
  for (uint64_t seed = 0; seed < 60; seed++) {
    CAPTURE(seed);
    const Graph graph = inline_calls(random_graph(seed));
    const int first = static_cast<int>(seed) % graph.size();
    const Graph outlined = outline(graph, first, std::min(first + 4, graph.size()));
    verify(outlined);
    CHECK(parse_graph(print(outlined)) == outlined);
    const std::vector<Tensor> inputs = random_inputs(graph, seed);
    const std::vector<Tensor> want = interpret(graph, inputs);
    const std::vector<Tensor> got = interpret(outlined, inputs);
    for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
    CHECK(print(dce(inline_calls(outlined))) == print(dce(graph)));
  }
}

TEST_CASE("lower sees no calls", "[call]") {
  const Graph graph = parse_graph(kNested);
  CHECK(lower(graph) == lower(inline_calls(graph)));
}
