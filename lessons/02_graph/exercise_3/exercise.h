// 02-3 ★★ Cut it out
//
// Node 731 of a graph is wrong, and its operands were right. Before you look into it, you want the
// smallest graph that shows it. Write the scissors:
//
//   cut(graph, known, wanted)
//
// returns a graph that computes the node `wanted`. The values of the nodes in `known` are given:
// each that is needed becomes an input of its type and place, called "v" and its id: "v730" (no
// input of the old graph has such a name). Inputs of the old graph that are needed stay what they
// are, name and attributes and all, unless they are known.
// Nothing else is in it: no node that `wanted` does not need, nothing behind a known one.
// Nodes keep their order and their places, the name of the graph stays.
//
//   %1: f32[3] = exp %0                           graph g(%0 v2: f32[3]) {
//   %2: f32[3] = neg %1      cut(graph, {2}, 3)     %1: f32[3] = mul %0, %0
//   %3: f32[3] = mul %2, %2  =>                     return %1
//
// `wanted` in `known` gives a graph of one input. Ids that are no node are a tc::Error.
#pragma once

#include "tiny_compile/graph/graph.h"

namespace exercise {

using namespace tiny_compile;

Graph cut(const Graph& graph, const std::vector<int>& known, int wanted);

}  // namespace exercise
