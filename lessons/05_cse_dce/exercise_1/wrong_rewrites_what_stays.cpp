// fails: the node that stays is as it was written
#include "exercise.h"

#include <algorithm>

namespace exercise {
namespace {

bool commutes(Op op) {
  return op == Op::add || op == Op::mul || op == Op::minimum || op == Op::maximum ||
         op == Op::eq || op == Op::ne || op == Op::bitwise_and || op == Op::bitwise_or ||
         op == Op::bitwise_xor;
}

}  // namespace

Graph merge_equal_nodes(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    if (commutes(node.op)) std::sort(node.inputs.begin(), node.inputs.end());
    for (int id = 0; id < out.size(); id++) {
      if (node.op != Op::input && same_computation(out[id], node)) return id;
    }
    return out.append(std::move(node));
  });
}

}  // namespace exercise
