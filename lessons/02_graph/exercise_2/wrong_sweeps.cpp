// fails: a long chain needs neither stack nor patience
#include "exercise.h"

namespace exercise {
namespace {

void check_ids(const Graph& graph, const std::vector<int>& ids) {
  for (int id : ids) {
    if (id < 0 || id >= graph.size()) fail("%", id, " is no node of the graph ", graph.name);
  }
}

std::vector<int> order_of(const Graph& graph) {
  std::vector<bool> done(graph.nodes.size());
  std::vector<int> order;
  for (size_t before = 1; before != order.size() + 1;) {
    before = order.size() + 1;
    for (int id = 0; id < graph.size(); id++) {
      check_ids(graph, graph[id].inputs);
      bool ready = !done[static_cast<size_t>(id)];
      for (int input : graph[id].inputs) ready = ready && done[static_cast<size_t>(input)];
      if (!ready) continue;
      done[static_cast<size_t>(id)] = true;
      order.push_back(id);
    }
  }
  if (order.size() != graph.nodes.size()) fail("graph ", graph.name, ": a ring");
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
