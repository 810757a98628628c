// Parts of long reductions beside what goes over the same rows.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

//   rows(c: 4, i: 63) { r0 = max(j: 1024) load x[..] ; store p[..] = r0 }         a part of max over 4096
//   rows(c: 4, i: 63) { r0 = sum(j: 1024) load x[..] ; r1 = sum(j: 1024) .. }     variances of its chunks
// =>
//   one kernel, which reads x once
//
// `parts` has the numbers of the kernels that each fused kernel has become, in order; where it has become
// several, each may join others. Of two the earlier stands for both, and the other's number is gone. Kernels run
// in the order of their numbers, each in a launch of its own. On a GPU alone.
void join_parts(Program& program, std::vector<std::vector<int>>& parts);

}  // namespace tiny_compile
