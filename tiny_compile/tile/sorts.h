// Rows, or runs of them, that threads of a GPU sort together => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Of a kernel that is sorted together (loops/sort_rules.h).
Tile lower_sort(const Program& program, const Kernel& kernel);

// tile/sort_merges.cpp: pairs of sorted runs.
Tile lower_merge(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
