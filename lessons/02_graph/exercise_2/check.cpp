#include "lessons/tools/check.h"
#include "exercise.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tiny_compile/cli/inputs.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::in_order;

namespace {

// places[id]: where the node goes.
Graph moved(const Graph& graph, const std::vector<int>& places) {
  Graph result;
  result.name = graph.name;
  result.nodes.resize(graph.nodes.size());
  for (int id = 0; id < graph.size(); id++) {
    Node node = graph[id];
    for (int& input : node.inputs) input = places[static_cast<size_t>(input)];
    result.nodes[static_cast<size_t>(places[static_cast<size_t>(id)])] = node;
  }
  for (int output : graph.outputs)
    result.outputs.push_back(places[static_cast<size_t>(output)]);
  return result;
}

std::vector<int> backwards(int size) {
  std::vector<int> places(static_cast<size_t>(size));
  std::iota(places.rbegin(), places.rend(), 0);
  return places;
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (int id : graph.inputs()) names.push_back(graph[id].name);
  return names;
}

std::string is_not_sorted(const Graph& shuffled, const Graph& got) {
  if (got.size() != shuffled.size())
    return str("of ", shuffled.size(), " nodes you keep ", got.size());
  if (const std::optional<Problem> problem = find_problem(got))
    return "your result is not sound: " + problem->message + "\n" + print(got) + "from:\n" +
           print(shuffled);
  if (input_names(got) != input_names(shuffled))
    return "the inputs were " + join(input_names(shuffled), ", ") + ", yours are " +
           join(input_names(got), ", ");
  return "";
}

// A graph in order, moved to these places, sorted, and compared by its values.
std::string sorts(const Graph& graph, const std::vector<int>& places) {
  const Graph shuffled = moved(graph, places), got = in_order(shuffled);
  if (const std::string trouble = is_not_sorted(shuffled, got); !trouble.empty())
    return trouble;
  const std::vector<Tensor> inputs = random_inputs(graph, 1);
  std::vector<Tensor> shuffled_inputs;
  for (const std::string& name : input_names(got)) {
    const std::vector<std::string> names = input_names(graph);
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    shuffled_inputs.push_back(inputs[static_cast<size_t>(at)]);
  }
  const std::vector<Tensor> want = interpret(graph, inputs),
                            values = interpret(got, shuffled_inputs);
  for (size_t k = 0; k < want.size(); k++) {
    if (!same_bits(want[k], values[k]))
      return str("output ", k, " has another value\n", print(got), "from:\n", print(shuffled));
  }
  return "";
}

// x, then `length` times neg, from the last to the first.
Graph long_chain(int length) {
  Graph graph = graph_of("%0 x: f32[2]", "return %0");
  for (int k = 0; k < length; k++) {
    Node node;
    node.op = Op::neg;
    node.type = graph[0].type;
    node.inputs = {k};
    graph.append(std::move(node));
  }
  graph.outputs = {length};
  return moved(graph, backwards(length + 1));
}

std::string chain_is_not_sorted(int length) {
  const Graph got = in_order(long_chain(length));
  if (got.size() != length + 1) return str("you keep ", got.size(), " nodes");
  for (int id = 0; id < got.size(); id++) {
    for (int input : got[id].inputs) {
      if (input >= id) return str("%", id, " reads %", input);
    }
  }
  return "";
}

}  // namespace

TEST_CASE("the example of the exercise") {
  const Graph graph =
      graph_of("%0 x: f32[3]", "%1: f32[3] = exp %0; %2: f32[3] = add %0, %1; return %2");
  EXPECT(sorts(graph, {2, 1, 0}));
}

TEST_CASE("a graph in order stays a graph") {
  const Graph graph = graph_of("%0 x: f32[3], %1 y: f32[3]",
                               "%2: f32[3] = sub %0, %1; %3: f32[3] = exp %0; return %2");
  EXPECT(sorts(graph, {0, 1, 2, 3}));
}

TEST_CASE("a node may read another twice") {
  const Graph graph = graph_of(
      "%0 x: f32[3]", "%1: f32[3] = mul %0, %0; %2: f32[3] = mul %1, %1; return %2, %2");
  EXPECT(sorts(graph, {2, 1, 0}));
}

TEST_CASE("inputs stay in the order in which they came") {
  const Graph graph = graph_of("%0 x: f32[3], %1 y: f32[3], %2 z: f32[3]",
                               "%3: f32[3] = sub %2, %0; %4: f32[3] = sub %3, %1; return %4");
  EXPECT(sorts(graph, {4, 3, 2, 1, 0}));
  EXPECT(sorts(graph, {2, 3, 4, 0, 1}));
}

TEST_CASE("a ring is refused") {
  Graph graph = graph_of("%0 x: f32[3]",
                         "%1: f32[3] = exp %0; %2: f32[3] = add %1, %0; %3: f32[3] = neg %2;"
                         "return %3");
  graph.nodes[1].inputs = {3};
  CHECK_THROWS_AS(in_order(graph), Error);
  graph.nodes[1].inputs = {1};
  CHECK_THROWS_AS(in_order(graph), Error);
}

TEST_CASE("an id that is no node is refused") {
  const Graph good = graph_of("%0 x: f32[3]", "%1: f32[3] = exp %0; return %1");
  for (int id : {-1, 2, 1'000'000'000}) {
    Graph graph = good;
    graph.nodes[1].inputs = {id};
    CHECK_THROWS_AS(in_order(graph), Error);
    graph = good;
    graph.outputs = {id};
    CHECK_THROWS_AS(in_order(graph), Error);
  }
}

TEST_CASE("a long chain needs neither stack nor patience") {
  EXPECT(chain_is_not_sorted(200'000));
}

TEST_CASE("a hundred random graphs in random order") {
  std::mt19937 random(7);
  for (uint64_t seed = 1; seed <= 100; seed++) {
    const Graph graph = flat_random_graph(seed);
    std::vector<int> places = backwards(graph.size());
    std::shuffle(places.begin(), places.end(), random);
    EXPECT(sorts(graph, places));
  }
}
