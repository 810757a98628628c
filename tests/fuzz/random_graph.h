// Random graphs and inputs for the fuzzers: every op, dtype, chain of views and awkward size.
#pragma once

#include <cstdint>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The same graph for the same seed. Indices are in range and integer divisors are not zero, so
// that no op raises an error. About `most_nodes` nodes at most, tensors of a few thousand
// elements, in a few graphs of 100,000. One graph of five has parts in calls
// and checkpoints. One seed of sixteen (seed % 16 == 15) gives a few rows of
// 1000 to 20,000 elements.
Graph random_graph(uint64_t seed, int most_nodes = 14);

// The same without calls, for exercises that know none.
Graph flat_random_graph(uint64_t seed, int most_nodes = 14);

// The vjp of that graph with respect to all inputs of floats; itself where it has none, or an op
// whose derivative nobody knows.
Graph random_gradient(uint64_t seed);

// The same, computing again what its seed's memory budget does not keep.
Graph random_recomputed(uint64_t seed);

// The graph and a copy of it with inputs of its own: each kernel has its like.
Graph random_twins(uint64_t seed);

// Values for its inputs: ordinary ones, and NaN, Inf, -0 and denormals among the floats.
// Layouts follow the inputs' strides.
std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed);

}  // namespace tiny_compile
