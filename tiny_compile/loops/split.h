// A Program rewrite that `schedule` makes before it chooses how kernels run.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether a kernel is a long reduction over few rows that split_reduction can take apart.
bool can_split(const Program& program, const Kernel& kernel);

//   rows() { r0 = sum(j: 5000) load x[j] ; store y[0] = r0 }
// =>
//   rows(c: 5) { r0 = sum(j: 1024) load x[c*1024 + j] if c*1024 + j < 5000 else -0.0
//                store p[c] = r0 }
//   rows()     { r0 = sum(c: 5) load p[c] ; store y[0] = r0 }
//
// The same tree of additions: chunks of 1024, then chunks of their results. Appends the buffers
// of partial results to `program`; returns both kernels.
std::vector<Kernel> split_reduction(Program& program, const Kernel& kernel);

// The number of a row: i0*8 + i1 of rows (i0: 4, i1: 8).
Expr flat_row(const Kernel& kernel);

// The number of a new temporary buffer, "p7_" + what it is for: the prefix and that number.
int add_temporary(Program& program, const std::string& prefix, const std::string& use,
                  const Type& type, const Expr& size);

}  // namespace tiny_compile
