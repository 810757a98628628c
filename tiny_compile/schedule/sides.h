// What of a kernel runs along an axis, and how do the threads of a block take it as it lies?
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Neighbours along the axis are neighbours in memory.
bool runs_along(const Kernel& kernel, const Expr& index, int axis);

// What runs along one axis and not along others.
struct Side {
  std::vector<Via> accesses;   // whose layouts are still to be chosen
  std::vector<int64_t> sizes;  // of their elements
  int64_t bytes = 0, loads = 0;
  int64_t vector = 8;  // elements of an access along the axis
  bool has_small() const;
};

Side side_of(const Program& program, const Kernel& kernel, int along,
             const std::vector<int>& across);

// Neighbours along one axis, and lines of them: of a block's piece of memory.
struct Dealt {
  Layout neighbours, lines;
};

// To so many warps. Where a warp has a part of a line, others have the rest at the same time,
// as memory's sectors may lie across both; or of a piece of it, of which a warp has its part of each.
Dealt dealt(int64_t neighbours, int64_t lines, int64_t vector, int64_t warps,
            int64_t pieces = 1);

}  // namespace tiny_compile
