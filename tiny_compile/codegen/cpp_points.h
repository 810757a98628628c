// Kernels whose loops are all rows, and whose steps are stores of each point.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Writes the kernel's body for the units begin .. end - 1, and returns how many points a unit has: one,
// or the neighbours of a short last row together. The last axis goes fastest.
int64_t write_points(KernelText& text);

}  // namespace tiny_compile
