// A concat of many operands as several of few.
#pragma once

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

inline constexpr size_t kMostJoined = 128;  // operands of a concat that is one kernel

// Every concat of more operands becomes a tree of concats over neighbours.
Graph with_short_concats(const Graph& graph);

}  // namespace tiny_compile
