// Random graphs and those that use every op, of a symbolic size.
#include "tests/fuzz/symbolic.h"

#include "tests/catch.h"
#include "tests/graph/every_op.h"

using namespace tiny_compile;

namespace {

void require_none(const std::vector<FuzzFailure>& failures) {
  for (const FuzzFailure& failure : failures)
    UNSCOPED_INFO("seed " << failure.seed << " after " << failure.stage << "\n"
                          << failure.text);
  REQUIRE(failures.empty());
}

}  // namespace

TEST_CASE("a graph of numbers is one of any number of rows", "[fuzz][sizes]") {
  const Graph numbers =
      parse_graph("graph g(%0 x: f32[7,3]) {\n  %1: f32[21] = reshape %0\n  return %1\n}\n");
  const auto any = with_symbol(numbers, 7, 1);
  REQUIRE(any);
  CHECK(print(*any) ==
        "graph g[n: 1..4096](%0 x: f32[n,3]) {\n  %1: f32[n*3] = reshape %0\n  return %1\n}\n");
  const Graph fixed = parse_graph(
      "graph g(%0 x: f32[7], %1 y: f32[6]) {\n"
      "  %2: f32[7] = pad %1 {low=[0], high=[1], value=0}\n"
      "  %3: f32[7] = add %0, %2\n  return %3\n}\n");
  CHECK_FALSE(with_symbol(fixed, 7, 1));
}

TEMPLATE_TEST_CASE_SIG("random graphs of n rows keep their bits through every stage",
                       "[fuzz][sizes]", ((int shard), shard), 0, 1, 2, 3) {
  SymbolicCounts counts;
  require_none(fuzz_symbolic(1000 + 50 * shard, 50, counts));
  CHECK(counts.graphs >= 50);
  CHECK(counts.calls >= 4 * counts.graphs);
}

TEST_CASE("random graphs of n rows are compiled once and keep their bits",
          "[fuzz][symbolic][sizes]") {
  SymbolicCounts counts;
  require_none(fuzz_symbolic_cpp(2000, 40, counts));
  CHECK(counts.graphs >= 40);
}

TEST_CASE("random graphs of n rows are CUDA once and keep their bits",
          "[fuzz][symbolic][sizes]") {
  SymbolicCounts counts;
  require_none(fuzz_symbolic_threads(2000, 24, counts));
  CHECK(counts.graphs >= 24);
}

TEST_CASE("graphs that use every op keep their bits with each size symbolic", "[fuzz][sizes]") {
  SymbolicCounts counts;
  for (const std::string& text : tests::valid_graphs()) {
    Graph graph = parse_graph(text);
    if (!symbols(graph).empty()) continue;
    graph.outputs.clear();
    for (int id = 0; id < graph.size(); id++)
      if (!graph[id].type.is_tuple()) graph.outputs.push_back(id);
    for (const uint64_t least : {0, 1}) require_none(symbolic_failures(graph, least, counts));
  }
  CHECK(counts.graphs >= 8);
}
