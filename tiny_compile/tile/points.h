// A kernel of points on a CPU => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: all of its loops are rows, and its schedule is
// Strategy::Pointwise.
bool has_points(const Program& program, const Kernel& kernel);

// Of such a kernel. A unit is a point, or the neighbours of a short last row together; the last axis
// goes fastest. Where loads go by way of squares (loops/transposed_loads.h), it is a square.
Tile lower_points(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
