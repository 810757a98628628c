// May a tile be run? What its text alone can show; races, and elements stored twice or never, show
// when its interpreter runs it.
#pragma once

#include <cstdint>
#include <string>

#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {

struct TileFault {
  std::string why;  // "" where the tile is sound
  int statement =
      -1;  // in the text's order, those inside behind their own; -1: the tile itself
};

// Of a tile of the program's kernel of this number: integers within what their names say, arrays
// and buffers used within their bounds, registers by unrolled names alone, vectors aligned,
// scalars defined on all paths to where they are used and of one dtype, shuffles where all lanes
// of a warp come and barriers where all threads of a block do, no more shared memory and threads
// than the machine has. Of symbolic sizes: for the ends of their intervals, and some numbers between.
TileFault fault_of(const Program& program, int kernel, const Tile& tile);

inline constexpr int64_t kMostBlocks = INT32_MAX;  // that a GPU starts

// tile/verify.cpp: of a tile of numbers, and the kernel that it is of.
TileFault fault_of_numbers(const Program& program, const Kernel& kernel, const Tile& tile);

// tile/faults.cpp: throws tc::Error: a fault of a tile, a kernel under layouts that has none or another that has one.
// The Program is taken to be verified.
void verify(const Tiles& tiles);

}  // namespace tiny_compile
