// Minimal cuts, and what a gradient keeps of its forward part.
#include "tiny_compile/passes/partition.h"

#include <algorithm>
#include <random>

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/passes/min_cut.h"
#include "tiny_compile/passes/passes.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

int64_t cost_of(const Network& network, const std::vector<bool>& sides) {
  int64_t cost = 0;
  for (const Network::Edge& edge : network.edges)
    if (sides[edge.from] && !sides[edge.to]) cost += edge.capacity;
  return cost;
}

int64_t least_cost(const Network& network, int source, int sink) {
  int64_t least = kUncuttable;
  for (int set = 0; set < 1 << network.nodes; set++) {
    if (!(set >> source & 1) || (set >> sink & 1)) continue;
    std::vector<bool> sides(network.nodes);
    for (int k = 0; k < network.nodes; k++) sides[k] = set >> k & 1;
    least = std::min(least, cost_of(network, sides));
  }
  return least;
}

// u is 4 bytes an element, e = cast u to f64 is 8; the backward part reads tanh e.
const char kWidened[] = R"(graph f(%0 x: f32[64,8], %1 w: f32[8,16]) {
  %2: f32[64,16] = matmul %0, %1
  %3: f64[64,16] = cast %2
  %4: f64[64,16] = tanh %3
  %5: f64[] = sum %4 {axes=[0,1]}
  return %5
})";

int count_again(const Graph& graph) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [](const Node& node) { return node.find(Key::again) != nullptr; }));
}

int count(const Graph& graph, Op op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const Node& node) { return node.op == op; }));
}

int64_t kept_bytes(const Halves& halves, size_t outputs) {
  int64_t bytes = 0;
  for (size_t k = outputs; k < halves.forward.outputs.size(); k++) {
    const Type& type = halves.forward[halves.forward.outputs[k]].type;
    bytes += product(type.shape).bounds().high * size_of(type.dtype);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a cut is as cheap as the cheapest of all", "[min_cut]") {
  std::mt19937 random(1);
  for (int turn = 0; turn < 200; turn++) {
    Network network{2 + static_cast<int>(random() % 7), {}};
    for (unsigned edges = random() % 20; edges > 0; edges--)
      network.edges.push_back({static_cast<int>(random() % network.nodes),
                               static_cast<int>(random() % network.nodes),
                               static_cast<int64_t>(random() % 10)});
    const std::vector<bool> sides = min_cut(network, 0, 1);
    REQUIRE(sides[0]);
    REQUIRE_FALSE(sides[1]);
    REQUIRE(cost_of(network, sides) == least_cost(network, 0, 1));
  }
}

TEST_CASE("of equal cuts the one next to the sink is taken", "[min_cut]") {
  REQUIRE(min_cut({4, {{0, 2, 3}, {2, 3, 3}, {3, 1, 3}}}, 0, 1) ==
          std::vector<bool>{true, false, true, true});
}

TEST_CASE("what cannot be cut is an error", "[min_cut]") {
  REQUIRE_THROWS_AS(min_cut({2, {{0, 1, kUncuttable}}}, 0, 1), Error);
}

TEST_CASE("the fewest bytes are kept, and the rest says that it is computed again",
          "[partition]") {
  const Graph joint = vjp(parse_graph(kWidened), {0, 1});
  const Graph again = recompute(joint, 1, 0);
  verify(again);
  REQUIRE(parse_graph(print(again)) == again);
  INFO(print(again));
  REQUIRE(count(again, Op::tanh) == 2);
  REQUIRE(count_again(again) == 2);  // the cast and the tanh; not the matmul
  REQUIRE(count(again, Op::matmul) == 3);
  REQUIRE(recompute(joint, 1, 1) == joint);
  REQUIRE(kept_bytes(split(joint, 1, 0), 1) == 64 * 16 * 4);
  REQUIRE(kept_bytes(split(joint, 1, 1), 1) == 64 * 16 * 8);
}

TEST_CASE("cse does not merge what is computed again with the first", "[partition]") {
  const Graph again = recompute(vjp(parse_graph(kWidened), {0, 1}), 1, 0);
  const Graph optimised = dce(cse(fold(simplify(again))));
  REQUIRE(count(optimised, Op::tanh) == 2);
  const Program program = fuse(lower(optimised));
  INFO(print(program));
  verify(program);
  REQUIRE(parse_program(print(program)) == program);
}

TEST_CASE("a kernel that computes again stays apart from earlier ones where it would be kept",
          "[partition]") {
  const std::string text = R"(graph f(%0 x: f32[64,64], %1 w: f32[64,64]) {
    %2: f32[64,64] = exp %0
    %3: f32[64,64] = matmul %2, %1
    %4: f32[64,64] = exp %0 {again=1}
    %5: f32[64,64] = matmul %4, %3
    return %5
  })";
  const Program program = lower(parse_graph(text));
  REQUIRE_THAT(print(program), ContainsSubstring("kernel exp_4 again=1 rows("));
  REQUIRE(parse_program(print(program)) == program);
  const Program fused = fuse(program);
  INFO(print(fused) << join(fused.refusals, "\n"));
  REQUIRE(fused.kernels.size() == 4);  // the second product waits for the first one
  REQUIRE_THAT(join(fused.refusals, "\n"),
               ContainsSubstring("exp_2 + exp_4: it is computed again, later"));
}

TEST_CASE("what is computed again and returned, or read at once, joins the first",
          "[partition]") {
  const Program program = lower(parse_graph(R"(graph f(%0 x: f32[64]) {
    %1: f32[64] = exp %0
    %2: f32[64] = exp %0 {again=1}
    %3: f32[64] = sin %1
    %4: f32[64] = cos %1 {again=1}
    return %2, %3, %4
  })"));
  REQUIRE(fuse(program).kernels.size() == 1);
}

TEST_CASE("again is 1 or more, of ops that compute", "[partition]") {
  const auto with = [](const std::string& line) {
    return "graph f(%0 x: f32[4]) {\n  %1: " + line + "\n  return %1\n}";
  };
  REQUIRE_NOTHROW(parse_graph(with("f32[4] = exp %0 {again=2}")));
  REQUIRE_THROWS_WITH(parse_graph(with("f32[4] = exp %0 {again=0}")),
                      ContainsSubstring("again is 1 or more"));
  REQUIRE_THROWS_AS(parse_graph(with("f32[4] = reshape %0 {again=1}")), Error);
  REQUIRE_THROWS_AS(parse_graph(with("f32[4] = exp %0 {again=1.5}")), Error);
}

TEST_CASE("a random draw has its number again", "[partition]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[512], %1 key: u64[2]) {
    %2: u32[512] = philox %1 {draw=7}
    %3: f32[512] = cast %2
    %4: f32[512] = mul %0, %3
    return %4
  })");
  const Graph again = recompute(vjp(graph, {0}), 1, 0);
  INFO(print(again));
  REQUIRE(count(again, Op::philox) == 2);
  for (const Node& node : again.nodes)
    if (node.op == Op::philox) REQUIRE(node.integer(Key::draw, 0) == 7);
}

TEST_CASE("a greater budget never keeps fewer bytes, and all keep the bits", "[partition]") {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    const Graph graph = random_graph(seed), joint = random_gradient(seed);
    if (joint == graph) continue;
    const size_t outputs = graph.outputs.size();
    INFO("seed " << seed << "\n" << print(joint));
    const std::vector<Tensor> inputs = random_inputs(joint, seed);
    const std::vector<Tensor> want = interpret(joint, inputs);
    int64_t before = -1;
    for (const double budget : {0.0, 0.3, 0.6, 1.0}) {
      const Halves halves = split(joint, outputs, budget);
      verify(halves.forward);
      verify(halves.backward);
      const int64_t bytes = kept_bytes(halves, outputs);
      REQUIRE(bytes >= before);
      before = bytes;
      const size_t own = halves.forward.inputs().size();
      const std::vector<Tensor> made =
          interpret(halves.forward, {inputs.begin(), inputs.begin() + own});
      for (size_t k = 0; k < outputs; k++) REQUIRE(same_bits(made[k], want[k]));
      std::vector<Tensor> given;
      for (const int number : halves.inputs) given.push_back(inputs[number]);
      given.insert(given.end(), made.begin() + outputs, made.end());
      given.insert(given.end(), inputs.begin() + own, inputs.end());
      const std::vector<Tensor> gradients = interpret(halves.backward, given);
      for (size_t k = 0; k < gradients.size(); k++)
        REQUIRE(same_bits(gradients[k], want[outputs + k]));
    }
  }
}

TEST_CASE("a partition needs no numbers", "[partition]") {
  const Graph graph = parse_graph(R"(graph f[n: 1..4096](%0 x: f32[n,8], %1 w: f32[8,8]) {
    %2: f32[n,8] = matmul %0, %1
    %3: f32[n,8] = tanh %2
    %4: f32[n,8] = exp %3
    %5: f32[] = sum %4 {axes=[0,1]}
    return %5
  })");
  const Graph again = recompute(vjp(graph, {0, 1}), 1, 0);
  verify(again);
  REQUIRE(count_again(again) > 0);
}

TEST_CASE("a budget is a share", "[partition]") {
  const Graph joint = vjp(parse_graph(kWidened), {0});
  for (const double bad : {-0.1, 1.5, std::nan("")})
    REQUIRE_THROWS_WITH(recompute(joint, 1, bad), ContainsSubstring("memory_budget is"));
}
