// The Tiles strategy: a blocked matmul with its epilogue.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Writes the kernel's body; returns its units (tiles). The kernel has one Dot and stores.
int64_t write_matmul(KernelText& text);

// Whether write_matmul can do this kernel: both operands are plain loads, linear in one row axis and k.
bool is_plain_matmul(const Kernel& kernel);

}  // namespace tiny_compile
