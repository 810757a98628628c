// 03-3 ★★ Forget in time
//
// interpret() keeps every value until the end. A chain of a hundred ops on one megabyte holds a
// hundred megabytes, and needs two. Write an interpreter that drops each value after the last node
// that reads it:
//
//   %1 = exp %0       holds %1
//   %2 = neg %1       holds %1 %2, then drops %1: nobody reads it any more
//   %3 = tanh %2      holds %2 %3, then drops %2
//
// A value that nobody reads is dropped at once; an output stays; nothing else does. (The inputs
// are the caller's: the checks count what run() made.) Compute
// each node that is no input, once and in order, with run(node, operands). Dropping is assigning:
// values[id] = Tensor(). A view shares the bytes of its operand, and these live as long as one
// of both does: no work for you.
#pragma once

#include <functional>
#include <span>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"

namespace exercise {

using namespace tiny_compile;

using Run = std::function<Tensor(const Node& node, std::span<const Tensor> operands)>;

// The outputs. `inputs` are as many as the graph's, and fit.
std::vector<Tensor> interpret_lean(const Graph& graph, std::span<const Tensor> inputs,
                                   const Run& run);

}  // namespace exercise
