// fails: inputs stay in the order in which they came
#include "exercise.h"

namespace exercise {
namespace {

void check_ids(const Graph& graph, const std::vector<int>& ids) {
  for (int id : ids) {
    if (id < 0 || id >= graph.size()) fail("%", id, " is no node of the graph ", graph.name);
  }
}

void visit(const Graph& graph, int id, std::vector<int>& state, std::vector<int>& order) {
  int& seen = state[static_cast<size_t>(id)];
  if (seen == 2) return;
  if (seen == 1) fail("graph ", graph.name, ": %", id, " waits for itself");
  seen = 1;
  check_ids(graph, graph[id].inputs);
  for (int input : graph[id].inputs) visit(graph, input, state, order);
  seen = 2;
  order.push_back(id);
}

std::vector<int> order_of(const Graph& graph) {
  std::vector<int> state(graph.nodes.size()), order;
  for (int id = 0; id < graph.size(); id++) visit(graph, id, state, order);
  return order;
}
}  // namespace

Graph in_order(const Graph& shuffled) {
  std::vector<int> ids(shuffled.nodes.size(), -1);
  Graph sorted;
  sorted.name = shuffled.name;
  for (int old : order_of(shuffled)) {
    Node node = shuffled[old];
    for (int& input : node.inputs) input = ids[static_cast<size_t>(input)];
    ids[static_cast<size_t>(old)] = sorted.append(std::move(node));
  }
  check_ids(shuffled, shuffled.outputs);
  for (int output : shuffled.outputs)
    sorted.outputs.push_back(ids[static_cast<size_t>(output)]);
  return sorted;
}

}  // namespace exercise
