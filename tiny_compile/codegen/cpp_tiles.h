// A kernel that is a tile program, as C++.
#pragma once

#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Bytes of a thread's own memory that a tile's arrays take; the first of them are 0 where a call begins.
struct OwnBytes {
  Expr bytes = 0;
  int64_t zeroed = 0;
};

// Writes the tile's arrays and statements; `text` is of its kernel.
OwnBytes write_cpp_tile(KernelText& text, const Tile& tile);

}  // namespace tiny_compile
