#include "exercise.h"

namespace exercise {

Graph quantise_matmuls(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    // TODO: where node is a matmul of f32, append the nodes above, and return the last one's id.
    return out.append(std::move(node));
  });
}

}  // namespace exercise
