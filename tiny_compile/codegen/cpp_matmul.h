// The Tiles strategy: a blocked matmul with its epilogue.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/source.h"

namespace tiny_compile {

// Writes the kernel's body, and into the entry its units, what they are worth, and each thread's own
// bytes. Needs can_be_tiled(program, kernel).
void write_matmul(KernelText& text, KernelEntry& entry);

// The register tiles that these kernels call, each type once.
std::string matmul_helpers(const Program& program, Calls& calls);

}  // namespace tiny_compile
