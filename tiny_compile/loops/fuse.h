// Program -> Program: kernels that step together become one.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Vertical fusion (a producer into its consumer), reductions with prologue and epilogue over
// the same rows, siblings that share reads. Each pair that shares a buffer and stays apart is
// recorded in `refusals` with the reason. The result moves no more bytes than `program` does.
// Kernels that have a schedule are past fusion, and stay as they are.
Program fuse(const Program& program);

// The last of it alone: siblings of a program that was fused, whose kernels read other arrays since.
Program join_what_shares_reads(const Program& program);

}  // namespace tiny_compile
