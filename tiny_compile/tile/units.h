// Loops over the units of work that a CPU's thread is handed.
#pragma once

#include <functional>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// A kernel's rows but the last axis have `count` units each: for each of them that has some of the
// thread's, those: first .. last - 1.
Body over_rows(const Program& program, const Kernel& kernel, const Tile& tile,
               const Expr& count, const std::function<Body(const Expr&, const Expr&)>& units);

// How many rows there are over all axes but the last.
Expr outer_rows_of(const Kernel& kernel);

// The same where each of these rows is a unit of the tile: all of the row.
Body over_whole_rows(const Program& program, const Kernel& kernel, const Tile& tile,
                     const std::function<Body()>& units);

}  // namespace tiny_compile
