// 08-3 ★★★ Out of the loop
//
//   rows(i0: 257, i1: 31) { store y[i0*31 + i1] = mul(load x[i0*31 + i1], exp(load b[i1])) }
// computes exp of each of 31 numbers 257 times. i0 changes nothing in it.
// =>
//   rows(i0: 31)          { store t[i0] = exp(load b[i0]) }
//   rows(i0: 257, i1: 31) { store y[i0*31 + i1] = mul(load x[i0*31 + i1], load t[i1]) }
//
// Write this pass, loop-invariant code motion on kernels. It looks at kernels of stores without
// inner loops. A scalar *knows* an axis where its index, or that of anything it is computed from
// (operands, mask), depends on it. A scalar moves out where
//   * it is an Apply with a dear op at or below it (is_dear, below);
//   * it does not know every axis of extent > 1;
//   * nothing that is computed from it could move instead: take the largest formula. Then look
//     again: what the old kernel still needs of its parts may move too.
// It moves into a kernel of its own, whose rows are the axes that it knows, in their order (none:
// rows(), one element), in front of the old one; the result goes through a new temporary, row-major
// over these rows. The old kernel loads it. Equal formulas are one scalar, so they move once.
//
// What Buffer, Scalar, Step and Kernel consist of is in tiny_compile/loops/program.h, and normalize
// too: it drops the scalars that no step needs any more, so a kernel may begin with too many.
// (With splice, an empty list copies all; a list must mark also what its scalars are computed
// from.) depends_on and row_major_strides are in base/expr.h. Add the new kernel and a launch of
// its own; buffers go at the end.
#pragma once

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/clone_with_mapping.h"

namespace exercise {

using namespace tiny_compile;

// Functions that take many instructions: those that the prelude computes.
inline bool is_dear(Op op) {
  return std::string_view(info(op).float_formula).starts_with("tc_") && op != Op::maximum &&
         op != Op::minimum && op != Op::abs && op != Op::neg;
}

Program hoist(const Program& program);

inline Pipeline with_mine() {
  return insert_after(default_pipeline(), "fuse", {"hoist", ProgramPass(hoist)});
}

}  // namespace exercise
