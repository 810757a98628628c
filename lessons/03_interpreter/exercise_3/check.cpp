#include "lessons/tools/check.h"
#include "exercise.h"

#include <algorithm>
#include <set>

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// Runs nodes, and knows how many blocks of those it made are alive.
struct Watcher {
  std::vector<std::weak_ptr<Storage>> made;
  size_t peak = 0, runs = 0;

  size_t alive() const {
    std::set<const Storage*> blocks;
    for (const std::weak_ptr<Storage>& storage : made) {
      if (const std::shared_ptr<Storage> block = storage.lock()) blocks.insert(block.get());
    }
    return blocks.size();
  }
  Tensor run(const Node& node, std::span<const Tensor> operands) {
    const Tensor result = evaluate(node, operands);
    made.push_back(result.info().storage);
    peak = std::max(peak, alive());
    runs++;
    return result;
  }
};

std::string other_values(const Graph& graph, Watcher& watcher) {
  const std::vector<Tensor> inputs = random_inputs(graph, 1), want = interpret(graph, inputs);
  std::vector<Tensor> got;
  try {
    got = exercise::interpret_lean(graph, inputs,
                                   [&](const Node& node, std::span<const Tensor> operands) {
                                     return watcher.run(node, operands);
                                   });
  } catch (const Error& error) {
    return str("while it ran: ", error.what(), "\n", print(graph));
  }
  for (size_t k = 0; k < want.size(); k++) {
    if (k >= got.size() || !got[k].defined() || !same_bits(want[k], got[k]))
      return str("output ", k, " has another value\n", print(graph));
  }
  return "";
}

// The values are right, and `blocks` of memory were alive at most, one for each node computed.
std::string lives_within(const std::string& inputs, const std::string& body, size_t blocks) {
  const Graph graph = graph_of(inputs, body);
  Watcher watcher;
  if (const std::string trouble = other_values(graph, watcher); !trouble.empty())
    return trouble;
  const size_t computed = graph.nodes.size() - graph.inputs().size();
  if (watcher.runs != computed)
    return str("you ran ", watcher.runs, " nodes of ", computed, "\n", print(graph));
  if (watcher.peak <= blocks) return "";
  return str("you held ", watcher.peak, " values at once, and ", blocks, " are enough\n",
             print(graph));
}

}  // namespace

TEST_CASE("a chain needs two values") {
  EXPECT(lives_within("%0 x: f32[7]",
                      "%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = tanh %2;"
                      "%4: f32[7] = abs %3; return %4",
                      2));
}

TEST_CASE("a value is kept for its last reader") {
  EXPECT(lives_within("%0 x: f32[7]",
                      "%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = tanh %2;"
                      "%4: f32[7] = add %3, %1; %5: f32[7] = abs %4; return %5",
                      3));
}

TEST_CASE("a value that is read twice by one node is dropped") {
  EXPECT(lives_within("%0 x: f32[7]",
                      "%1: f32[7] = exp %0; %2: f32[7] = mul %1, %1; %3: f32[7] = mul %2, %2;"
                      "%4: f32[7] = mul %3, %3; return %4",
                      2));
}

TEST_CASE("an output that is read later stays") {
  EXPECT(lives_within("%0 x: f32[7]",
                      "%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = tanh %2;"
                      "return %1, %3, %1",
                      3));
}

TEST_CASE("what nobody reads is dropped at once") {
  EXPECT(lives_within("%0 x: f32[7]",
                      "%1: f32[7] = exp %0; %2: f32[7] = neg %0; %3: f32[7] = tanh %0;"
                      "%4: f32[7] = abs %0; return %4",
                      1));
}

TEST_CASE("an input may be an output") {
  EXPECT(lives_within("%0 x: f32[7], %1 y: f32[7]", "%2: f32[7] = neg %1; return %0, %2", 1));
}

TEST_CASE("a view keeps the bytes of its operand") {
  EXPECT(lives_within("%0 x: f32[7,5]",
                      "%1: f32[7,5] = exp %0; %2: f32[5,7] = permute %1 {axes=[1,0]};"
                      "%3: f32[5,7] = neg %2; %4: f32[5,7] = abs %3; return %4",
                      2));
}

TEST_CASE("a hundred ops hold two values") {
  std::string body;
  for (int id = 1; id <= 100; id++) body += str("%", id, ": f32[1,999] = neg %", id - 1, ";");
  const Graph graph = graph_of("%0 x: f32[1,999]", body + "return %100");
  Watcher watcher;
  EXPECT(other_values(graph, watcher));
  score("values held at once", static_cast<int64_t>(watcher.peak), 2);
}

TEST_CASE("a hundred random graphs") {
  for (uint64_t seed = 1; seed <= 100; seed++) {
    Watcher watcher;
    EXPECT(other_values(flat_random_graph(seed), watcher));
  }
}
