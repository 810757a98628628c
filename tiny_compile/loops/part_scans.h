// Scans apart from what is done to their rows before, and from each other.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether a kernel for a GPU scans rows that it reduces too, or scans twice: one thread would do all
// of that, where many can do each.
bool can_part_scans(const Program& program, const Kernel& kernel);

// The kernels in its place, in order; adds a buffer for each register that a scan needs. The same
// bits.
std::vector<Kernel> part_scans(Program& program, const Kernel& kernel);

}  // namespace tiny_compile
