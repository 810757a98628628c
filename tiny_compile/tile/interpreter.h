// What a tile program means: all threads of a block, statement by statement, without any compiler.
#pragma once

#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {

// Runs all blocks of a tile of numbers. Throws tc::Error for an access outside a buffer or an array, an element stored
// twice, a shared element that another thread writes or has written since the last barrier, and a
// shuffle or barrier that not all threads of the warp or block come to.
void run_tile(const Tile& tile, std::vector<Memory>& memory);

// The program's outputs, the tiles run as they say, the other kernels as kernels. Throws what
// `before` throws, as interpreting a Program does.
std::vector<Tensor> interpret(const Tiles& tiles, std::span<const Tensor> inputs,
                              const BeforePoints& before = {});

}  // namespace tiny_compile
