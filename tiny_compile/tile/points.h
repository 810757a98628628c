// A kernel of points on a CPU => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: all of its loops are rows, its schedule is Strategy::Pointwise,
// and no load has to go by way of squares (loops/turned_loads.h).
bool has_points(const Program& program, const Kernel& kernel);

// Of such a kernel. A unit is a point, or the neighbours of a short last row together; the last axis
// goes fastest.
Tile lower_points(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
