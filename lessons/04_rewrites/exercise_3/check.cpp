#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::work_first;

namespace {

std::string becomes(const std::string& inputs, const std::string& before,
                    const std::string& after) {
  const Graph graph = graph_of(inputs, before), got = work_first(graph);
  const std::string trouble = other_graph(got, graph_of(inputs, after));
  if (!trouble.empty()) return "from:\n" + print(graph) + trouble;
  return other_bits(graph, got);
}

std::string stays(const std::string& inputs, const std::string& body) {
  return becomes(inputs, body, body);
}

// Elements that pointwise ops compute.
int64_t work(const Graph& graph) {
  int64_t total = 0;
  for (const Node& node : graph.nodes) {
    if (is_pointwise(node.op)) total += product(node.type.shape).constant();
  }
  return total;
}

}  // namespace

TEST_CASE("a function of what is repeated is computed once") {
  EXPECT(becomes("%0 x: f32[3,1]",
                 "%1: f32[3,100] = expand %0; %2: f32[3,100] = exp %1; return %2",
                 "%1: f32[3,1] = exp %0; %2: f32[3,100] = expand %1; return %2"));
}

TEST_CASE("two operands from one shape") {
  EXPECT(becomes("%0 x: f32[3,1], %1 y: f32[3,1]",
                 "%2: f32[3,7] = expand %0; %3: f32[3,7] = expand %1;"
                 "%4: f32[3,7] = sub %2, %3; return %4",
                 "%2: f32[3,1] = sub %0, %1; %3: f32[3,7] = expand %2; return %3"));
}

TEST_CASE("a constant goes along") {
  EXPECT(becomes("%0 x: f32[3,1]",
                 "%1: f32[3,7] = expand %0; %2: f32[] = constant {value=2.0};"
                 "%3: f32[3,7] = expand %2; %4: f32[3,7] = div %3, %1; return %4",
                 "%1: f32[] = constant {value=2.0}; %2: f32[3,1] = expand %1;"
                 "%3: f32[3,1] = div %2, %0; %4: f32[3,7] = expand %3; return %4"));
  EXPECT(becomes("%0 x: f32[3,1]",
                 "%1: f32[3,7] = expand %0; %2: f32[] = constant {value=2.0};"
                 "%3: f32[3,7] = expand %2; %4: f32[3,7] = div %1, %3; return %4",
                 "%1: f32[] = constant {value=2.0}; %2: f32[3,1] = expand %1;"
                 "%3: f32[3,1] = div %0, %2; %4: f32[3,7] = expand %3; return %4"));
}

TEST_CASE("numbers alone become one number") {
  EXPECT(becomes("%0 x: f32[], %1 y: f32[]",
                 "%2: f32[5,7] = expand %0; %3: f32[5,7] = expand %1;"
                 "%4: bool[5,7] = lt %2, %3; return %4",
                 "%2: bool[] = lt %0, %1; %3: bool[5,7] = expand %2; return %3"));
}

TEST_CASE("chains are computed before repeating") {
  EXPECT(becomes("%0 x: f32[3,1]",
                 "%1: f32[3,7] = expand %0; %2: f32[3,7] = exp %1; %3: f16[3,7] = cast %2;"
                 "%4: f16[3,7] = neg %3; return %4",
                 "%1: f32[3,1] = exp %0; %2: f16[3,1] = cast %1; %3: f16[3,1] = neg %2;"
                 "%4: f16[3,7] = expand %3; return %4"));
}

TEST_CASE("operands from two shapes stay") {
  EXPECT(stays("%0 x: f32[5,1], %1 y: f32[1,5]",
               "%2: f32[5,5] = expand %0; %3: f32[5,5] = expand %1;"
               "%4: f32[5,5] = add %2, %3; return %4"));
  EXPECT(stays("%0 x: f32[1], %1 y: f32[1,1]",
               "%2: f32[5,5] = expand %0; %3: f32[5,5] = expand %1;"
               "%4: f32[5,5] = add %2, %3; return %4"));
}

TEST_CASE("an operand that is no expand keeps the op") {
  EXPECT(stays("%0 x: f32[3,1], %1 y: f32[3,7]",
               "%2: f32[3,7] = expand %0; %3: f32[3,7] = sub %2, %1; return %3"));
  EXPECT(stays("%0 x: f32[3,1], %1 y: f32[3,7]",
               "%2: f32[3,7] = expand %0; %3: f32[3,7] = sub %1, %2; return %3"));
}

TEST_CASE("where nothing is gained the op stays") {
  EXPECT(stays("%0 x: f32[7]", "%1: f32[1,7] = expand %0; %2: f32[1,7] = exp %1; return %2"));
}

TEST_CASE("integer division stays") {
  const std::string inputs = "%0 x: i32[3,1], %1 y: i32[3,1]";
  for (const std::string op : {"floor_divide", "remainder"}) {
    const std::string body =
        "%2: i32[3,0] = expand %0; %3: i32[3,0] = expand %1; %4: i32[3,0] = " + op +
        " %2, %3; return %4";
    const Graph graph = graph_of(inputs, body);
    EXPECT(other_graph(work_first(graph), graph));
  }
  EXPECT(becomes("%0 x: f32[3,1]",
                 "%1: f32[3,7] = expand %0; %2: f32[3,7] = remainder %1, %1; return %2",
                 "%1: f32[3,1] = remainder %0, %0; %2: f32[3,7] = expand %1; return %2"));
}

TEST_CASE("reductions of what is repeated stay") {
  EXPECT(stays("%0 x: f32[3,1]",
               "%1: f32[3,7] = expand %0; %2: f32[3] = sum %1 {axes=[1]}; return %2"));
}

TEST_CASE("random graphs keep their bits") { EXPECT(other_bits_somewhere(work_first)); }

TEST_CASE("a scale of rows is computed on rows") {
  auto scale = [](Tensor x) {
    Tensor most = abs(x).max({-1}, true).expand({65, 257});
    Tensor safe = maximum(most, 1e-6);
    Tensor scale = sqrt(safe / 127);
    return x / scale;
  };
  const Graph graph = compile(scale).specialization(zeros({65, 257})).traced.graph;
  const Graph got = work_first(graph);
  EXPECT(other_bits(graph, got));
  score("elements computed", work(got), 2 * 65 * 257 + 3 * 65);
  CHECK(work(got) <= 2 * 65 * 257 + 3 * 65);
}
