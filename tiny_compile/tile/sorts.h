// Rows, or runs of them, that threads of a GPU sort together => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: it sorts on a GPU, runs that a block's registers hold or pairs of runs that
// are sorted, and its sizes are numbers.
bool has_sort(const Program& program, const Kernel& kernel);

Tile lower_sort(const Program& program, const Kernel& kernel);

// tile/sort_merges.cpp: pairs of sorted runs.
Tile lower_merge(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
