// A kernel of rows that threads do alone => a tile program.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: its schedule is Strategy::Rows or Columns; on a GPU, where no threads share
// its rows.
bool has_rows(const Program& program, const Kernel& kernel);

// Of such a kernel. A unit is a row, or neighbouring rows that are columns of memory.
Tile lower_rows(const Program& program, const Kernel& kernel);

// Rows that are worth a thread: the schedule's. Those whose length is a size may be shorter than those
// that it is for: then so many that a thread is worth asking.
Expr grain_of(const Kernel& kernel);

}  // namespace tiny_compile
