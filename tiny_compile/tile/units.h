// Loops over the units of work that a CPU's thread is handed.
#pragma once

#include <functional>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// A kernel's rows but the last axis have `count` units each: for each of them that has some of the
// thread's, those: first .. last - 1.
Body over_rows(const Program& program, const Kernel& kernel, const Tile& tile,
               const Expr& count, const std::function<Body(const Expr&, const Expr&)>& units);

// The same where a row is a unit, and `units` are all of it. The tile has so many.
Body over_whole_rows(const Program& program, const Kernel& kernel, Tile& tile,
                     const std::function<Body()>& units);

}  // namespace tiny_compile
