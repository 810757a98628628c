// Which index was out of range? Compiled code notes that there was one; this finds it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/runtime/cuda_errors.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// "mlp.cpp:14: gather: an index is out of range: 7 for size 3", of the first node that has one
// with these inputs; "" where none has. Computes the indices alone.
std::string bad_index_in_words(const Graph& graph, std::span<const Tensor> inputs);

// The ops of the graph that take indices, for a GPU's words about them.
std::vector<IndexUse> index_uses(const Graph& graph);

// For a handler of the IndexError that a run of the graph with these inputs gave: throws it with
// these words and the function's name, or as it is where they are "".
[[noreturn]] void rethrow_index_error(const Graph& graph, const std::string& name,
                                      std::span<const Tensor> inputs);

}  // namespace tiny_compile
