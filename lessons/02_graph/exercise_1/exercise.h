// 02-1 ★ A shape rule
//
// Give a new op its rule: a convolution of x: [N,C,L] with a kernel: [O,C,K]. With
//
//   reach = dilation * (K - 1) + 1          positions that the kernel spans
//
// the result is [N,O,(L + 2 * padding - reach) / step + 1], rounded down. Refuse, with a tc::Error:
//
//   operands that are not of rank 3; two dtypes           name the types: x.str() is "f32[2,3,10]"
//   other channels C in the kernel                        name both
//   a step or a dilation below 1, a padding below 0       name it
//   a K of 0
//   a kernel that reaches further than L + 2 * padding    name the reach and that sum
//
// Sizes may be symbols ("n: 1..64"), so compute with Expr. Channels are the same if their Exprs
// are, as in infer_matmul. Of the kernel's reach, refuse only what cannot be for any symbol:
//   Expr size = x.shape[2] + 4;         + - * and floor_div(a, b)
//   size.bounds().low, .high            what is known of it; of a number: itself, twice
//   a != b, size.is_constant(3)         fail("conv1d: 3 channels, not ", size);
#pragma once

#include "tiny_compile/graph/graph.h"

namespace exercise {

using namespace tiny_compile;

struct Conv1d {
  int64_t step = 1, padding = 0, dilation = 1;
};

Type conv1d_type(const Type& x, const Type& kernel, const Conv1d& how);

}  // namespace exercise
