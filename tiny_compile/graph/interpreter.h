// What a graph means: the reference that every other stage must match bit for bit.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The outputs of `graph` on these inputs (one per input node, in order; their strides are
// free). Throws tc::Error where an input's dtype or shape differs, an index is out of range or
// an integer is divided by zero.
std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs);

// The value of every node (of a call none: its results are those of its items), for lessons and
// for finding the first node that differs. `before` is called before each node, those inside of
// others too, and may throw.
std::vector<Tensor> interpret_all(const Graph& graph, std::span<const Tensor> inputs,
                                  const std::function<void(const Node&)>& before = {});

// One node on its operands: views share storage, everything else is a new row-major tensor.
Tensor evaluate(const Node& node, std::span<const Tensor> operands);

// Whether evaluate() gives another view of x's bytes: a reshape may have to copy.
bool shares_storage(const Node& view, const Tensor& x);

}  // namespace tiny_compile
