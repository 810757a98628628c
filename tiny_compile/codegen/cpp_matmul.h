// The Tiles strategy: a blocked matmul with its epilogue.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Writes the kernel's body; returns its units (tiles). Needs is_tiled_matmul(kernel).
int64_t write_matmul(KernelText& text);

// The register tiles that these kernels call, each type once.
std::string matmul_helpers(const Program& program);

}  // namespace tiny_compile
