// The ops of a graph once more, on other tensors.
#pragma once

#include <span>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The value of each node: recorded where a function is traced on this thread, computed at once
// otherwise. `inputs`: as many as the graph has, of its inputs' types.
std::vector<Tensor> replay_all(const Graph& graph, std::span<const Tensor> inputs);

// Of each output.
std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace tiny_compile
