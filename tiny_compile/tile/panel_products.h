// A product of matrices on a CPU: packed panels that tiles of sums in registers go over.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: its schedule is Strategy::Tiles, on a CPU, and it has results.
bool has_panels(const Program& program, const Kernel& kernel);

Tile lower_panels(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
