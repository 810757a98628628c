// Columns that scan or scatter: neighbouring rows are the lanes of every loop.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/source.h"

namespace tiny_compile {

// Writes the kernel's body, and its units (parts of strips of lanes) into the entry.
void write_columns(KernelText& text, KernelEntry& entry);

}  // namespace tiny_compile
