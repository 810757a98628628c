// 02-2 ★★ Put in order
//
// Somebody built a graph with its nodes in any order, so that an operand may stand behind its
// reader. Its ids are still positions: inputs = {7} reads nodes[7]. Put it in order.
//
//   %0: f32[3] = add %2, %1                   %0: f32[3] = input x
//   %1: f32[3] = exp %2              =>       %1: f32[3] = exp %0
//   %2: f32[3] = input x                      %2: f32[3] = add %0, %1
//   return %0                                 return %2
//
// Every node stays, read or not. Inputs stay in the order in which they came: they are the
// signature. Any order that verify() accepts will do for the others. Nodes that wait for each
// other in a ring, and ids that are no node, are a tc::Error. A chain of 200,000 nodes must not
// overflow the stack, and must not take a minute.
#pragma once

#include "tiny_compile/graph/graph.h"

namespace exercise {

using namespace tiny_compile;

Graph in_order(const Graph& shuffled);

}  // namespace exercise
