// When are two nodes one value? When op, operands, type and attributes are equal; for ops that
// commute, whatever the operands' order.
//
//   %2 = mul %0, %1 ; %3 = mul %1, %0 ; %4 = add %2, %3
//     =>  %2 = mul %0, %1 ; %3 = add %2, %2
#include <algorithm>
#include <unordered_map>

#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

bool commutes(Op op) {
  switch (op) {
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

size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15ull + (seed >> 31);
}

size_t hash_of(const Node& node) {
  size_t hash = mix(static_cast<size_t>(node.op) * 16 + static_cast<size_t>(node.type.dtype),
                    node.value.bits);
  for (int input : node.inputs) hash = mix(hash, static_cast<size_t>(input));
  for (const Expr& size : node.type.shape) hash = mix(hash, size.hash());
  for (const Attr& attr : node.attrs) {
    hash = mix(hash, static_cast<size_t>(attr.key));
    for (const Expr& value : attr.values) hash = mix(hash, value.hash());
  }
  return hash;
}

}  // namespace

Graph cse(const Graph& graph) {
  std::unordered_multimap<size_t, int> seen;
  std::vector<Node> keys;  // of each new node, operands in canonical order
  return rebuild(graph, [&](Graph& out, Node node) {
    Node key = node;
    if (commutes(key.op)) std::sort(key.inputs.begin(), key.inputs.end());
    const size_t hash = hash_of(key);
    const auto [first, last] = seen.equal_range(hash);
    for (auto it = first; it != last && node.op != Op::input; ++it) {
      if (same_computation(keys[it->second], key)) return it->second;
    }
    keys.push_back(std::move(key));
    const int id = out.append(std::move(node));
    seen.insert({hash, id});
    return id;
  });
}

}  // namespace tiny_compile
