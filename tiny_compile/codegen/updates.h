// Statements that update chosen places of memory, in C++.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// An Update or UpdateAll.
void write_update(KernelText& text, const Tile& tile, const Statement& s);

// The functions that they call.
std::string update_helpers(const Calls& calls);

}  // namespace tiny_compile
