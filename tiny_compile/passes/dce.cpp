// Which nodes does nobody need? Those that no path leads from to an output.
//   %1 = exp %0 ; %2 = neg %0 ; return %2   =>   %1 = neg %0 ; return %1
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {

Graph dce(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size());
  for (int output : graph.outputs) needed[output] = true;
  for (int id = graph.size() - 1; id >= 0; id--) {
    if (graph[id].op == Op::input) needed[id] = true;
    if (!needed[id]) continue;
    for (int input : graph[id].inputs) needed[input] = true;
  }
  int id = 0;
  return rebuild(graph, [&](Graph& out, Node node) {
    return needed[id++] ? out.append(std::move(node)) : -1;
  });
}

}  // namespace tiny_compile
