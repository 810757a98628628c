// fails: a matmul is no product of numbers
#include "exercise.h"

#include <algorithm>

namespace exercise {
namespace {

bool commutes(Op op) {
  switch (op) {
    case Op::matmul:
    case Op::add:
    case Op::mul:
    case Op::minimum:
    case Op::maximum:
    case Op::eq:
    case Op::ne:
    case Op::bitwise_and:
    case Op::bitwise_or:
    case Op::bitwise_xor: return true;
    default: return false;
  }
}

// mul %1, %0 => mul %0, %1: a key to compare by, not the node that stays.
Node sorted(Node node) {
  if (commutes(node.op)) std::sort(node.inputs.begin(), node.inputs.end());
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
