#include "exercise.h"

namespace exercise {

Graph work_first(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    // TODO: all operands expanded from one shape? Then work on that, and expand the result.
    return out.append(std::move(node));
  });
}

}  // namespace exercise
