// The innermost loop of stores on a CPU, whatever loops stand around it.
#pragma once

#include <map>
#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Stores of a kernel along one of its axes, and what they are made into.
struct StoreLoop {
  const Program& program;
  const Kernel& kernel;
  const Axis& along;
  std::vector<const Step*> steps;
  std::vector<int> values;  // of each, the tile's scalar
};

// A name that no size has; nor an axis of the kernel.
std::string unused(const Program& program, std::string name);
std::string unused(const Program& program, const Kernel& kernel, std::string name);

// Names an integer at the end of the body, by a name that is unused there.
Expr named(const Program& program, const Kernel& kernel, Body& body, const std::string& what,
           const Expr& extent, const Expr& value);

// A loop whose turns can be done side by side.
Statement vector_loop(const Axis& axis, const Expr& from, const Expr& to, Body body);

// from .. to - 1, each by `each`, which defines the values; a large result that nobody reads soon past the
// caches, from blocks in L1 (`blocks`: buffer -> array), if these have room.
Body store_loop(Tile& tile, std::map<int, int>& blocks, const StoreLoop& stores,
                const Expr& from, const Expr& to, Body each);

}  // namespace tiny_compile
