// A scan of rows on a GPU => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: on a GPU, what scans in groups (loops/scan_shape.h).
bool has_scan(const Program& program, const Kernel& kernel);

Tile lower_scan(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
