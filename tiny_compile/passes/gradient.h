// Reverse mode: the graph that also computes derivatives.
#pragma once

#include <vector>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

// The vector-Jacobian product of a graph. Inputs: the graph's, then a cotangent of each output of
// floats, named d0, d1, ... Outputs: the graph's, then the cotangent of each input `wrt` (numbers
// of inputs; each of floats, or it throws), zeros where no output depends on it. Every node of the
// backward part has the place of the one that it differentiates.
Graph vjp(const Graph& graph, const std::vector<int>& wrt);

}  // namespace tiny_compile
