#include "lessons/tools/check.h"
#include "exercise.h"

#include "tiny_compile/cli/inputs.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::cut;

namespace {

const std::string kInputs = "%0 x: f32[3], %1 y: f32[3] {strides=[2]}";
const std::string kBody =
    "%2: f32[3] = exp %0  # a.cpp:1; %3: f32[3] = neg %1  # a.cpp:2;"
    "%4: f32[3] = mul %2, %3  # a.cpp:3; %5: f32[1] = sum %4 {axes=[0], keepdim=1}  # a.cpp:4;"
    "%6: f32[3] = expand %5  # a.cpp:5; %7: f32[3] = sub %4, %6  # a.cpp:6; return %7, %2";

std::string cuts(const std::vector<int>& known, int wanted, const std::string& inputs,
                 const std::string& body) {
  const Graph graph = graph_of(kInputs, kBody), got = cut(graph, known, wanted);
  if (const std::optional<Problem> problem = find_problem(got))
    return "your piece is no sound graph: " + problem->message + "\n" + print(got);
  const Graph want = graph_of(inputs, body);
  if (print(got) == print(want)) return "";
  return "from:\n" + print(graph) + "yours:\n" + print(got) + "wanted:\n" + print(want);
}

}  // namespace

TEST_CASE("a node with its past") {
  EXPECT(cuts({}, 4, kInputs,
              "%2: f32[3] = exp %0  # a.cpp:1; %3: f32[3] = neg %1  # a.cpp:2;"
              "%4: f32[3] = mul %2, %3  # a.cpp:3; return %4"));
}

TEST_CASE("what is not needed is left out") {
  EXPECT(
      cuts({}, 3, "%0 y: f32[3] {strides=[2]}", "%1: f32[3] = neg %0  # a.cpp:2; return %1"));
}

TEST_CASE("nothing behind a known node is kept") {
  EXPECT(cuts({4}, 7, "%0 v4: f32[3]",
              "%1: f32[1] = sum %0 {axes=[0], keepdim=1}  # a.cpp:4;"
              "%2: f32[3] = expand %1  # a.cpp:5; %3: f32[3] = sub %0, %2  # a.cpp:6;"
              "return %3"));
}

TEST_CASE("the operands of a known node are gone") {
  EXPECT(cuts({5}, 6, "%0 v5: f32[1]", "%1: f32[3] = expand %0  # a.cpp:5; return %1"));
}

TEST_CASE("a node that is reached beside a known one stays") {
  const Graph got = cut(graph_of(kInputs, kBody), {5}, 7);
  CHECK(!find_problem(got));
  CHECK(got.size() == 8);  // x, y, exp, neg, mul, v5, expand, sub
}

TEST_CASE("a known node that is not needed is left out") {
  EXPECT(cuts({2, 5}, 3, "%0 y: f32[3] {strides=[2]}",
              "%1: f32[3] = neg %0  # a.cpp:2; return %1"));
  EXPECT(cuts({2, 4}, 6, "%0 v4: f32[3]",
              "%1: f32[1] = sum %0 {axes=[0], keepdim=1}  # a.cpp:4;"
              "%2: f32[3] = expand %1  # a.cpp:5; return %2"));
}

TEST_CASE("a known input is an input by its number") {
  EXPECT(cuts({1}, 3, "%0 v1: f32[3]", "%1: f32[3] = neg %0  # a.cpp:2; return %1"));
}

TEST_CASE("the wanted node may be known") {
  EXPECT(cuts({7}, 7, "%0 v7: f32[3]", "return %0"));
}

TEST_CASE("an id that is no node is refused") {
  const Graph graph = graph_of(kInputs, kBody);
  for (int id : {-1, 8, 1000}) {
    CHECK_THROWS_AS(cut(graph, {}, id), Error);
    CHECK_THROWS_AS(cut(graph, {2, id}, 7), Error);
  }
}

TEST_CASE("each node of random graphs is computed from its operands") {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    const Graph graph = flat_random_graph(seed);
    const std::vector<Tensor> values = interpret_all(graph, random_inputs(graph, seed));
    for (int id = 0; id < graph.size(); id++) {
      if (graph[id].op == Op::input) continue;
      const Graph piece = cut(graph, graph[id].inputs, id);
      INFO(print(piece));
      REQUIRE(!find_problem(piece));
      std::vector<Tensor> known;
      for (int input : piece.inputs())
        known.push_back(values[std::stoul(piece[input].name.substr(1))]);
      CHECK(same_bits(interpret(piece, known)[0], values[static_cast<size_t>(id)]));
    }
  }
}
