// Indices of loads under a mask.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// An index with the value of `index` wherever the scalar `mask` is true (-1: always), and perhaps
// another where it is not; shorter, if what the mask says of the axes makes it so.
Expr narrowed(const Kernel& kernel, int mask, const Expr& index);

}  // namespace tiny_compile
