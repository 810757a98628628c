// The Columns strategy: neighbouring rows are the lanes of every loop.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Writes the kernel's body; returns its units (strips of lanes).
int64_t write_columns(KernelText& text);

}  // namespace tiny_compile
