#include "lessons/tools/check.h"
#include "exercise.h"

#include <algorithm>

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

std::string becomes(const std::string& inputs, const std::string& before,
                    const std::string& after) {
  const Graph graph = graph_of(inputs, before), got = exercise::merge_by_predicate(graph);
  const std::string trouble = other_graph(got, graph_of(inputs, after));
  return trouble.empty() ? other_bits(graph, got) : "from:\n" + print(graph) + trouble;
}

std::string stays(const std::string& inputs, const std::string& body) {
  return becomes(inputs, body, body);
}

}  // namespace

TEST_CASE("equal in everything is one value") {
  EXPECT(becomes("%0 x: f32[5]", "%1: f32[5] = exp %0; %2: f32[5] = exp %0; return %1, %2",
                 "%1: f32[5] = exp %0; return %1, %1"));
}

TEST_CASE("two draws are two values") {
  EXPECT(
      stays("%0 key: u64[2]",
            "%1: u32[7] = philox %0 {draw=0}; %2: u32[7] = philox %0 {draw=1}; return %1, %2"));
}

TEST_CASE("two calls with one key and one draw are one value") {
  EXPECT(
      becomes("%0 key: u64[2]",
              "%1: u32[7] = philox %0 {draw=3}; %2: u32[7] = philox %0 {draw=3}; return %1, %2",
              "%1: u32[7] = philox %0 {draw=3}; return %1, %1"));
}

TEST_CASE("two dropouts drop different elements") {
  manual_seed(7);
  const CompileOptions options = {.backend = "cpp", .pipeline = exercise::with_mine()};
  auto twice = compile([](Tensor x) { return dropout(x, 0.5) + dropout(x, 0.5); }, options);
  const std::vector<float> sums = twice(ones({1001})).to_vector<float>();
  const auto kept_once = std::count(sums.begin(), sums.end(), 2.0f);
  INFO("of 1001 elements, so many were kept by one dropout and not by the other:");
  CHECK(kept_once > 300);
}

TEST_CASE("what differs in its type alone is two values") {
  EXPECT(stays("%0 x: f32[5]", "%1: f16[5] = cast %0; %2: bf16[5] = cast %0; return %1, %2"));
  EXPECT(stays("%0 x: f32[6]",
               "%1: f32[2,3] = reshape %0; %2: f32[3,2] = reshape %0; return %1, "
               "%2"));
}

TEST_CASE("attributes tell views and reductions apart") {
  EXPECT(
      stays("%0 x: f32[3,3]",
            "%1: f32[3] = sum %0 {axes=[0]}; %2: f32[3] = sum %0 {axes=[1]}; return %1, %2"));
  EXPECT(stays("%0 x: f32[7]",
               "%1: f32[3] = slice %0 {axis=0, start=0, stop=3, step=1}; %2: "
               "f32[3] = slice %0 {axis=0, start=1, stop=4, step=1}; return %1, "
               "%2"));
}

TEST_CASE("constants are compared bit by bit") {
  EXPECT(stays("%0 x: f32[]",
               "%1: f32[] = constant {value=0.0}; %2: f32[] = constant "
               "{value=-0.0}; return %1, %2, %0"));
  EXPECT(
      becomes("%0 x: f32[]",
              "%1: f32[] = constant {value=nan}; %2: f32[] = constant {value=nan}; return %1, "
              "%2, %0",
              "%1: f32[] = constant {value=nan}; return %1, %1, %0"));
  EXPECT(stays("%0 x: f32[]",
               "%1: i64[] = constant {value=9007199254740993}; %2: i64[] = "
               "constant {value=9007199254740992}; return %1, %2, %0"));
}

TEST_CASE("one call written on two lines is one value") {
  EXPECT(
      becomes("%0 x: f32[5]",
              "%1: f32[5] = exp %0  # a.cpp:1; %2: f32[5] = exp %0  # a.cpp:2; return %1, %2",
              "%1: f32[5] = exp %0; return %1, %1"));
}

TEST_CASE("two inputs are never one") {
  EXPECT(stays("%0 x: f32[5], %1 y: f32[5]", "%2: f32[5] = sub %0, %1; return %2"));
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(other_bits_somewhere(exercise::merge_by_predicate));
}
