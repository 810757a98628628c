// What must hold of a tile before its first statement.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Throws a Fault (tile/uses.h): a grid, blocks or units that no machine starts, arrays that it has no room for.
void check_head(const Program& program, const Tile& tile);

}  // namespace tiny_compile
