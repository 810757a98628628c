// Softmax's sum and log_softmax's are one where a row is no longer than a chunk, and nowhere else.
#include "tests/passes/rewrites.h"

#include "tests/catch.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/tracer.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

// Of rows of so many, softmax and the sum_exp that log_softmax takes, in front of softmax's sum or behind it.
std::string entropy(int64_t length, bool sum_first, const std::string& most = "3.4028235e+38") {
  const std::string full = str("f32[3,", length, "]"), row = "f32[3,1]";
  std::vector<std::string> values = {str(row, " = max %0 {axes=[1], keepdim=1}"),
                                     str("f32[] = constant {value=-", most, "}"),
                                     str(row, " = expand %2"),
                                     str(row, " = maximum %1, %3"),
                                     str("f32[] = constant {value=", most, "}"),
                                     str(row, " = expand %5"),
                                     str(row, " = minimum %4, %6"),
                                     str(full, " = expand %7"),
                                     str(full, " = sub %0, %8"),
                                     str(full, " = exp %9")};
  const std::string of_log = "f32[3] = sum_exp %0 {axes=[1]}",
                    of_softmax = str(row, " = sum %10 {axes=[1], keepdim=1}");
  values.push_back(sum_first ? of_softmax : of_log);
  values.push_back(sum_first ? of_log : of_softmax);
  values.push_back(str(full, " = expand %", sum_first ? 11 : 12));
  values.push_back(str(full, " = div %10, %13"));
  std::string text = str("graph g(%0 x: ", full, ") {\n");
  for (size_t k = 0; k < values.size(); k++) text += str("%", k + 1, ": ", values[k], "\n");
  return text + str("return %14, %", sum_first ? 12 : 11, "\n}\n");
}

int count_of(const Graph& graph, Op op) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op == op;
  return count;
}

}  // namespace

TEST_CASE("softmax's sum is log_softmax's, whichever comes first", "[cse]") {
  for (const bool sum_first : {true, false}) {
    for (const int64_t length : {1, 7, 1000, 1024}) {
      const Graph graph = parse_graph(entropy(length, sum_first)), result = merge_equal(graph);
      INFO(print(result));
      REQUIRE_NOTHROW(verify(result));
      CHECK(count_of(result, Op::sum_exp) == 0);
      CHECK(count_of(result, Op::exp) == 1);
      CHECK(count_of(result, Op::sum) == 1);
      CHECK(agree(graph, result));  // NaN, infinities and zeros of both signs too
    }
  }
}

TEST_CASE("a sum of exponentials stays where it is another number", "[cse]") {
  const auto stays = [](const std::string& text) {
    const Graph result = merge_equal(parse_graph(text));
    INFO(print(result));
    CHECK(count_of(result, Op::sum_exp) == 1);
  };
  stays(entropy(1025, true));      // each chunk has its own maximum
  stays(entropy(7, true, "1.0"));  // clamped elsewhere
  stays(
      "graph g(%0 x: f32[3,7]) {\n  %1: f32[3] = sum_exp %0 {axes=[1]}\n"
      "  %2: f32[3,7] = exp %0\n  %3: f32[3] = sum %2 {axes=[1]}\n  return %1, %3\n}\n");
}

TEST_CASE("softmax and log_softmax of halves share their sum, whoever widens them", "[cse]") {
  const auto entropies = [](std::span<const Tensor> x) {
    return std::vector<Tensor>{softmax(x[0], 1) * log_softmax(x[0], 1)};
  };
  const std::vector<Tensor> inputs = {zeros({3, 9}).to(DType::bf16)};
  const Graph inlined = inline_calls(trace(entropies, inputs, "f").graph);
  REQUIRE(count_of(inlined, Op::sum_exp) == 1);
  CHECK(count_of(merge_equal(inlined), Op::sum_exp) == 0);
}

TEST_CASE("what equal sums went into is merged as well", "[cse]") {
  const Graph graph = parse_graph(
      "graph g(%0 x: f32[3,7]) {\n  %1: f32[3] = max %0 {axes=[1]}\n"
      "  %2: f32[3,1] = max %0 {axes=[1], keepdim=1}\n  %3: f32[] = constant "
      "{value=-3.4028235e+38}\n"
      "  %4: f32[3,1] = expand %3\n  %5: f32[3,1] = maximum %2, %4\n"
      "  %6: f32[] = constant {value=3.4028235e+38}\n  %7: f32[3,1] = expand %6\n"
      "  %8: f32[3,1] = minimum %5, %7\n  %9: f32[3,7] = expand %8\n  %10: f32[3,7] = sub %0, "
      "%9\n"
      "  %11: f32[3,7] = exp %10\n  %12: f32[3,1] = sum %11 {axes=[1], keepdim=1}\n"
      "  %13: f32[3,1] = log %12\n  %14: f32[3,1] = sum_exp %0 {axes=[1], keepdim=1}\n"
      "  %15: f32[3,1] = log %14\n  return %13, %15\n}\n");
  const Graph merged = merge_equal(graph);
  INFO(print(merged));
  CHECK(count_of(merged, Op::log) == 1);
  CHECK(agree(graph, merged));
}

TEST_CASE("a softmax that nobody reads is left alone", "[cse]") {
  Graph graph = parse_graph(entropy(7, true));
  graph.outputs = {12};
  CHECK(count_of(merge_equal(graph), Op::sum_exp) == 1);
}
