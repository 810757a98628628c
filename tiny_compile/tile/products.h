// A product of matrices on a GPU => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: its schedule is Strategy::Tiles, on a GPU, and it has results.
bool has_product(const Program& program, const Kernel& kernel);

// Of such a kernel: a block has a square of the results, a thread `each` rows and columns of it.
Tile lower_product(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
