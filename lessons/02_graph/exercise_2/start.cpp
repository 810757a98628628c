#include "exercise.h"

namespace exercise {

Graph in_order(const Graph& shuffled) {
  // TODO: in which order? ids[old] is the new id of each node.
  std::vector<int> order;
  for (int id = 0; id < shuffled.size(); id++) order.push_back(id);
  std::vector<int> ids(shuffled.nodes.size(), -1);
  Graph sorted;
  sorted.name = shuffled.name;
  for (int old : order) {
    Node node = shuffled[old];
    for (int& input : node.inputs) input = ids.at(static_cast<size_t>(input));
    ids[static_cast<size_t>(old)] = sorted.append(std::move(node));
  }
  for (int output : shuffled.outputs)
    sorted.outputs.push_back(ids.at(static_cast<size_t>(output)));
  return sorted;
}

}  // namespace exercise
