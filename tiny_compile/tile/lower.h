// A kernel under its schedule's layouts => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Of a kernel whose schedule is Strategy::Layouts and legal (loops/legal_layouts.h).
Tile lower_to_tile(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
