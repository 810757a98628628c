// What is left of a kernel whose loops do not turn.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The reduction or dot of no elements: sum() = +0.0, prod() = 1. Throws for max, min, argmax and
// argmin, which have none.
Literal of_nothing(Op op, DType dtype);

// The kernel without the steps whose loops count to 0; what they reduce is of_nothing. Without
// any step where it has no rows.
Kernel without_empty_loops(const Kernel& kernel);

// The program without kernels that have no steps; a buffer that nobody writes then is over no other.
Program without_empty_kernels(Program program);

}  // namespace tiny_compile
