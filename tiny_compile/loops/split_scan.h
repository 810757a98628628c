// Long scans of few rows as kernels of many rows, and a short scan between them.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether a kernel is scans over one loop (with stores for the same points), so few of them and so
// long that a machine would wait for a row.
bool can_split_scan(const Program& program, const Kernel& kernel);

// The kernels in its place, in order; adds the buffers between them. The same bits.
std::vector<Kernel> split_scan(Program& program, const Kernel& kernel);

}  // namespace tiny_compile
