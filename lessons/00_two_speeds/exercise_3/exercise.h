// 00-3 ★★ Read the bytes off the graph
//
// The ladder's first rung is one kernel an op. Its bytes can be read off the graph, before
// anything is lowered or run. Write that function.
//
//   * A view (here: expand) and a constant are no kernels. Who reads an expanded tensor reads the
//     elements there were before: adding a bias f32[5] to f32[3,5] reads 15 + 5 elements. Who reads
//     a constant, also an expanded one, reads nothing.
//   * Every other op reads its operands, each element once, and writes its result. An operand
//     that comes twice (x * x) is read once.
//   * An input is not made by a kernel; it is only read.
//
// The graphs have pointwise ops, reductions, expand, constants and inputs, of any dtype.
//
//   node.op == Op::expand               is_view(node.op)
//   product(type.shape).constant()      elements: sizes are Expr, here plain numbers
//   size_of(type.dtype)                 bytes of one
#pragma once

#include "tiny_compile/graph/graph.h"

namespace exercise {

using namespace tiny_compile;

int64_t bytes_of_graph(const Graph& graph);

}  // namespace exercise
