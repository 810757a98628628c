// A part of a graph put into a call: the same function, with a graph inside.
#pragma once

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

// The nodes first .. last-1 but inputs become one call (or checkpoint), read by items; the graph as it is where
// nothing else reads them, or where they make or need a tuple that crosses the boundary.
Graph outline(const Graph& graph, int first, int last, Op op = Op::call);

}  // namespace tiny_compile
