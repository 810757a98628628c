// Kernels whose loops are all rows, and whose steps are stores of each point.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Writes the kernel's body for the points begin .. end - 1, whose last axis goes fastest.
void write_points(KernelText& text);

}  // namespace tiny_compile
