// How is a concat of 2,000 operands compiled? A kernel asks of each element from which operand it
// comes, so its text and an element's time grow with the operands. A tree of short concats moves an
// element once a level, and neighbours of equal shapes are joined by one function (kernel_key.h):
//
//   %9 = concat %0, %1, ... %1999
// =>
//   %9 = concat %0, ... %127 ; %10 = concat %128, ... %255 ; ... ; %25 = concat %9, %10, ...
#include "tiny_compile/loops/short_concats.h"

#include <algorithm>

#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

bool is_long(const Node& node) {
  return node.op == Op::concat && node.inputs.size() > kMostJoined;
}

int append_join(Graph& graph, Node node, std::vector<int> inputs) {
  node.inputs = std::move(inputs);
  return append_inferred(graph, std::move(node));
}

int append_tree(Graph& graph, const Node& node) {
  std::vector<int> parts = node.inputs;
  while (parts.size() > kMostJoined) {
    std::vector<int> joined;
    for (size_t first = 0; first < parts.size(); first += kMostJoined) {
      const size_t end = std::min(first + kMostJoined, parts.size());
      const auto begin = parts.begin();
      joined.push_back(end - first == 1 ? parts[first]
                                        : append_join(graph, node,
                                                      {begin + std::ptrdiff_t(first),
                                                       begin + std::ptrdiff_t(end)}));
    }
    parts = std::move(joined);
  }
  return append_join(graph, node, std::move(parts));
}

}  // namespace

Graph with_short_concats(const Graph& graph) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_long)) return graph;
  return rebuild(graph, [](Graph& out, Node node) {
    return is_long(node) ? append_tree(out, node) : out.append(std::move(node));
  });
}

}  // namespace tiny_compile
