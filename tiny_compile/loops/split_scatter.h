// Long scatters into few targets as kernels of many rows, and one that brings their results together.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether a kernel is one scatter that adds or multiplies, with so many updates for each of few
// targets, and so few rows, that a machine would wait for a row.
bool can_split_scatter(const Program& program, const Kernel& kernel);

// Of a table of sums that a block of 256 threads, or a core, has at hand: bytes.
int64_t table_bytes(const Machine& machine);

// The kernels in its place, in order; adds the buffer between them. The same bits.
std::vector<Kernel> split_scatter(Program& program, const Kernel& kernel);

}  // namespace tiny_compile
