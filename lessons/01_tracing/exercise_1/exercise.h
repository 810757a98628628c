// 01-1 ★ A function of your own
//
// The library calls many functions ops that are none: relu, softmax and gelu's tanh form are C++
// functions over tensors. Write one more, the loss of Huber: with d = |prediction - target|
//
//   d * d / 2                   where d <= delta
//   delta * (d - delta / 2)     elsewhere
//
// for each element. It must run with numbers and while traced, a NaN must stay a NaN, and every
// node that it makes must belong to the line of its caller, as with softmax in the lesson.
//
//   abs(x), where(condition, a, b), x <= y, and the operators       of tensors and numbers
//   const Scope scope(where);     while it lives, ops belong to the line `where`
#pragma once

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

// An Operand is a tensor or a C++ number; .where is the line of the call.
Tensor huber_loss(const Operand& prediction, const Operand& target, double delta);

}  // namespace exercise
