#include "exercise.h"

namespace exercise {

Graph trim_concats(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    // TODO: where node is a slice of a concat, along its axis, read only the parts it needs.
    return out.append(std::move(node));
  });
}

}  // namespace exercise
