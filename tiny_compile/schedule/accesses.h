// How many lines of memory does a warp touch at a time?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of 128 bytes, for 32 elements, summed over what the kernel's loops read and write: where a
// warp's lanes are neighbouring rows, and where they are neighbours within rows. 1 where they lie
// side by side, 32 where each lies elsewhere. What shorter loops access counts for less, as it is done
// less often.
struct Lines {
  double of_rows = 0, of_loops = 0, accesses = 0;
  bool crosses = false;  // some lie side by side along rows alone, others along loops alone
};

// Neighbours of these loops lie side by side there, or most do, as where an axis of few hundreds ends. False
// where other loops say where.
bool lies_along(const Program& program, const Kernel& kernel, const std::vector<int>& inner,
                const Expr& index, int buffer);

// Of a kernel with rows and loops whose sizes are numbers.
Lines lines_of(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
