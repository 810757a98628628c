// A failing graph, made small enough to read.
#pragma once

#include <functional>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

// The smallest graph found for which `fails` still holds: outputs go, nodes go or become
// inputs, sizes become 1 or 2. `fails` sees valid graphs only.
Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& fails);

}  // namespace tiny_compile
