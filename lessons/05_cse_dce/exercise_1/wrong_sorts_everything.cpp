// fails: a - b and b - a stay two values
#include "exercise.h"

#include <algorithm>

namespace exercise {
namespace {

Node sorted(Node node) {
  std::sort(node.inputs.begin(), node.inputs.end());
  return node;
}

}  // namespace

Graph merge_equal_nodes(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    for (int id = 0; id < out.size(); id++) {
      if (node.op != Op::input && same_computation(sorted(out[id]), sorted(node))) return id;
    }
    return out.append(std::move(node));
  });
}

}  // namespace exercise
