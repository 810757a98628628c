#include "exercise.h"

namespace exercise {

Graph merge_equal_nodes(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    for (int id = 0; id < out.size(); id++) {
      // TODO: a * b and b * a are one value, a - b and b - a are two.
      if (node.op != Op::input && same_computation(out[id], node)) return id;
    }
    return out.append(std::move(node));
  });
}

}  // namespace exercise
