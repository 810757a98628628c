// fails: a ring is refused
#include "exercise.h"

namespace exercise {
namespace {

void check_ids(const Graph& graph, const std::vector<int>& ids) {
  for (int id : ids) {
    if (id < 0 || id >= graph.size()) fail("%", id, " is no node of the graph ", graph.name);
  }
}

// A node is ready once all of its operands are.
std::vector<int> order_of(const Graph& graph) {
  std::vector<std::vector<int>> readers(graph.nodes.size());
  std::vector<size_t> missing(graph.nodes.size());
  std::vector<int> order;
  for (int id = 0; id < graph.size(); id++) {
    check_ids(graph, graph[id].inputs);
    for (int input : graph[id].inputs) readers[static_cast<size_t>(input)].push_back(id);
    missing[static_cast<size_t>(id)] = graph[id].inputs.size();
    if (graph[id].inputs.empty()) order.push_back(id);
  }
  for (size_t next = 0; next < order.size(); next++) {
    for (int reader : readers[static_cast<size_t>(order[next])]) {
      if (--missing[static_cast<size_t>(reader)] == 0) order.push_back(reader);
    }
  }
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
