// A kernel that is a tile program, as C++.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Writes the tile's arrays and statements; `text` is of its kernel. The bytes of the thread's own memory that
// its arrays take.
Expr write_cpp_tile(KernelText& text, const Tile& tile);

}  // namespace tiny_compile
