// How large are the tiles of a GPU's product, and how long do they take?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that can be tiled (loops/legal_schedule.h): its rows and columns are the last row axes.
Schedule product_tiles(const Program& program, Kernel kernel);

// Seconds of a GPU's multiprocessors under schedule tiles, memory and launch apart.
struct TileTimes {
  double arithmetic = 0;  // of the results that there are, with all multiprocessors at work
  double all = 0;  // with those that tiles cover besides, idle multiprocessors and waiting
};
TileTimes tile_times(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
