// Mutated texts: each one parses to a graph whose text parses back equal, or throws tc::Error.
// Anything else (a crash, a CHECK, another exception, a sanitizer's report) fails the run.
#include "tests/base/mutate.h"
#include "tests/catch.h"
#include "tests/graph/every_op.h"
#include "tiny_compile/graph/graph.h"

using namespace tiny_compile;

namespace {

bool parses_back(const Graph& graph) { return parse_graph(print(graph)) == graph; }

}  // namespace

TEST_CASE("100,000 mutated graph texts parse and print back, or are tc::Errors") {
  const std::vector<std::string> corpus = tests::valid_graphs();
  std::mt19937_64 random(20240607);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 100'000; i++) {
    const std::string text = tests::mutated(corpus, random);
    std::optional<Graph> graph;
    try {
      graph = parse_graph(text);
    } catch (const Error&) {
      refused++;
    }
    if (!graph) continue;
    accepted++;
    if (!parses_back(*graph)) FAIL(text);
  }
  CHECK(accepted > 3'000);  // both ways are exercised
  CHECK(refused > 50'000);
}

TEST_CASE("every prefix of a graph's text is an error") {
  for (const std::string& text : tests::valid_graphs()) {
    const size_t last = text.rfind('}');
    for (size_t length = 0; length <= last; length++) {
      CHECK_THROWS_AS(parse_graph(std::string_view(text).substr(0, length)), Error);
    }
  }
}
