// fails: a known input is an input by its number
#include "exercise.h"

#include <algorithm>

namespace exercise {
namespace {

void check_id(const Graph& graph, int id) {
  if (id < 0 || id >= graph.size()) fail("%", id, " is no node of the graph ", graph.name);
}

Node given(const Node& known, int id) {
  Node input;
  input.type = known.type;
  input.name = str("v", id);
  input.where = known.where;
  return input;
}

// Backwards from the wanted node, not beyond a known one.
std::vector<bool> needed_nodes(const Graph& graph, const std::vector<bool>& is_known,
                               int wanted) {
  std::vector<bool> needed(graph.nodes.size());
  needed[static_cast<size_t>(wanted)] = true;
  for (int id = wanted; id >= 0; id--) {
    if (!needed[static_cast<size_t>(id)] || is_known[static_cast<size_t>(id)]) continue;
    for (int input : graph[id].inputs) needed[static_cast<size_t>(input)] = true;
  }
  return needed;
}

}  // namespace

Graph cut(const Graph& graph, const std::vector<int>& known, int wanted) {
  std::vector<bool> is_known(graph.nodes.size());
  check_id(graph, wanted);
  for (int id : known) {
    check_id(graph, id);
    is_known[static_cast<size_t>(id)] = true;
  }
  const std::vector<bool> needed = needed_nodes(graph, is_known, wanted);
  std::vector<int> ids(graph.nodes.size(), -1);
  Graph piece;
  piece.name = graph.name;
  for (int id = 0; id <= wanted; id++) {
    if (!needed[static_cast<size_t>(id)]) continue;
    Node node = is_known[static_cast<size_t>(id)] && graph[id].op != Op::input
                    ? given(graph[id], id)
                    : graph[id];
    for (int& input : node.inputs) input = ids[static_cast<size_t>(input)];
    ids[static_cast<size_t>(id)] = piece.append(std::move(node));
  }
  piece.outputs = {ids[static_cast<size_t>(wanted)]};
  return piece;
}

}  // namespace exercise
