// Graph -> Program: one kernel per op; views become index expressions.
#pragma once

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Every node that computes gets a buffer and a kernel of its own; constants, iota and views get
// neither. A view that is an output is copied. The result is verified by its caller.
Program lower(const Graph& graph);

}  // namespace tiny_compile
