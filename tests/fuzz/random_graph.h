// Random graphs and inputs for the fuzzers: every op, dtype, chain of views and awkward size.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The same graph for the same seed. Indices are in range and integer divisors are not zero, so
// that no op raises an error. At most `most_nodes` nodes, tensors of at most a few thousand
// elements.
Graph random_graph(uint64_t seed, int most_nodes = 14);

// Values for its inputs: ordinary ones, and NaN, Inf, -0 and denormals among the floats.
// Layouts follow the inputs' strides.
std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed);

// The smallest graph found for which `fails` still holds: nodes are dropped, outputs cut.
Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& fails);

}  // namespace tiny_compile
