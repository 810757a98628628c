#include "exercise.h"

namespace exercise {

Graph cut(const Graph& graph, const std::vector<int>&, int wanted) {
  // TODO: this keeps everything up to the wanted node.
  Graph piece;
  piece.name = graph.name;
  for (int id = 0; id <= wanted; id++) piece.append(graph[id]);
  piece.outputs = {wanted};
  return piece;
}

}  // namespace exercise
