// What a tile program means: all threads of a block, statement by statement, without any compiler.
#pragma once

#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Runs all blocks. Throws tc::Error for an access outside a buffer or an array, an element stored
// twice, a shared element that another thread writes or has written since the last barrier, and a
// shuffle or barrier that not all threads of the warp or block come to.
void run_tile(const Tile& tile, std::vector<Memory>& memory);

// The program's outputs, its kernels under layouts run as tile programs, the others as kernels.
std::vector<Tensor> interpret_tiles(const Program& program, std::span<const Tensor> inputs);

}  // namespace tiny_compile
