// What `schedule` does to a kernel's axes before it chooses how the kernel runs.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether it does more than store each of its points.
bool is_sequential(const Kernel& kernel);

// Whether one of its steps at least adds up columns over rows.
bool folds_rows(const Kernel& kernel);

bool depends_on_any(const Kernel& kernel, const Expr& index, const std::vector<int>& axes);

// Whether an index differs between rows.
bool depends_on_rows(const Kernel& kernel, const Expr& index);

// Whether finding the place takes a division or a remainder.
bool divides(const Expr& index);

// How far apart neighbours along the axis lie, which may be symbolic: n of i*n + j. 0 where that varies.
Expr stride_of(const Expr& index, const Axis& axis);

// Axes that always step together become one: (i0: 8, i1: 4) with index i0*4 + i1 => (i0: 32).
Kernel collapse_axes(Kernel kernel);

// Whether each of the loops steps over all of the next, wherever: they are what one was cut into.
bool step_as_one(const Kernel& kernel, const std::vector<int>& loops);

// Loops over which nothing is done that depends on their order, as the largest of all elements is, go in the order in
// which these lie in memory:
//   max(j: 64, k: 1000) load x[k*64 + j]   =>   max(k: 1000, j: 64) load x[k*64 + j]
Kernel order_loops(Kernel kernel);

// The row axis along which most accesses are contiguous goes last. A matmul's rows keep their
// order (batches, rows, columns), and so do rows that are folded.
Kernel order_rows(Kernel kernel);

// Rows whose steps only store, each over all loops, as points of all axes; others as they are.
Kernel as_points(Kernel kernel);

// On a GPU a row's few results are points where a thread's pack of 16 bytes is whole rows of them:
//   rows(i: 64) { store y[i*2 + j] for (j: 2) = .. }   =>   rows(i: 64, j: 2) { store y[i*2 + j] = .. }
Kernel with_short_rows_as_points(const Program& program, Kernel kernel);

}  // namespace tiny_compile
