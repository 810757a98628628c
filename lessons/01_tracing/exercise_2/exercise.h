// 01-2 ★ A branch on a value
//
// A training loop keeps gradients small. Its author wrote, and tested with numbers:
//
//   Tensor clip_with_branch(Tensor gradient, double most) {
//     Tensor norm = sqrt((gradient * gradient).sum());
//     if (norm.item<float>() > most) return gradient * (most / norm);
//     return gradient;
//   }
//
// compile() refuses it. Write it so that one graph serves every gradient, and each result has the
// bits of the function above: for a norm that is 0, infinite or NaN as well.
//
//   where(condition, a, b)        for each element; the three broadcast, as operands of + do
//   x < y, x > y, x == y          tensors of bool
//   minimum(x, y), maximum(x, y)  a NaN in either gives a NaN
#pragma once

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

Tensor clip(Tensor gradient, double most);

inline Tensor clip_with_branch(Tensor gradient, double most) {
  Tensor norm = sqrt((gradient * gradient).sum());
  if (norm.item<float>() > most) return gradient * (most / norm);
  return gradient;
}

}  // namespace exercise
