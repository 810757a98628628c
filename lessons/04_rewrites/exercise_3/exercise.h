// 04-3 ★★ Work before repeating
//
// Means, scales and biases are computed on a few numbers, repeated by expand, and then worked on:
//
//   %2: f32[3,1000] = expand %1        %1: f32[3,1]
//   %3: f32[3,1000] = exp %2           3000 exponentials
// becomes
//   %2: f32[3,1] = exp %1              3
//   %3: f32[3,1000] = expand %2
//
// Write the pass: a pointwise op whose operands are all expands becomes the op on what is
// expanded, and one expand of that. The operands must be expanded from one shape S. An operand
// expanded from a number (a shape []: most constants) fits as well; it is expanded to S first,
// where S is not [] itself. Where S has as many elements as the result, nothing is gained: leave
// the op. In chains, each op profits from the one before.
//
// One group of ops must stay as they are: floor_divide and remainder of integers raise an error
// for a divisor of 0, and an expand to [3,0] may be what kept them from doing so.
//
// A Node is the plain struct of lesson 02. out.append() may move the nodes: copy what you need of
// an out[id] before you append.
//
//   node.type.shape, out[id].type.shape     a Shape, compared with ==
//   product(shape)                          its number of elements, an Expr
//   is_pointwise(node.op)
#pragma once

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/passes/passes.h"

namespace exercise {

using namespace tiny_compile;

Graph work_first(const Graph& graph);

inline Pipeline with_mine() {
  return insert_after(default_pipeline(), "simplify", {"work_first", work_first});
}

}  // namespace exercise
