// How are the rows of a block, and the elements of a row, dealt to its threads?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Powers of two, but for the warps that have a whole chunk each of a row: any number of them. Lanes
// that have no row of their own are the loops'.
struct Deal {
  int64_t row_registers = 1, row_warps = 1, row_lanes = 1, row_vector = 1;
  int64_t cluster = 1, warps = 1, registers = 1, vector = 1;  // of the elements of a row
  int64_t chunks = 0;  // of a row that a block has at a time, each by `warps`; 0: not by chunks
  int64_t resident = 0;     // blocks of a multiprocessor, at least; 0: the compiler's
  bool asks_ahead = false;  // each of them for its later rows
  bool evenly = false;      // in any order, so that each warp has as much of a row's last chunk
  bool loops_first = false;  // the loops have the lower lanes, and each warp chunks of its own
  int64_t lanes() const { return kLanes / row_lanes; }
  int64_t warps_of_row() const { return chunks > 0 ? warps * chunks : warps; }  // in a block
};

// Warps that a block has at least, where there is work for them.
Deal in_blocks_of(int64_t warps, Deal deal);

// The layouts that the deal makes: a shorter loop gets less of each
// level, lanes first; a longer one the rest as turns. Few rows get fewer lanes and warps.
Schedule laid_out(const Program& program, const Kernel& kernel, const Deal& deal);

// It asks for nothing ahead where there is nothing to ask for.
Schedule asking_for_something(Kernel kernel, Schedule schedule);

}  // namespace tiny_compile
