// A kernel of points on a GPU => a tile program.
#pragma once

#include <optional>

#include "tiny_compile/loops/kernel_key.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel's tile is made so: all of its loops are rows of numbers, and its schedule is
// Strategy::Pointwise, or its rows are single elements (loops/single_rows.h).
bool has_packs(const Program& program, const Kernel& kernel);

// Of such a kernel: each thread computes packs of points (loops/point_packs.h). `any_count`: as
// for any number of points, which differ in nothing else (loops/counted.h).
Tile lower_packs(const Program& program, const Kernel& kernel, bool any_count);

// What the tile of a counted kernel is for any number of points, `points`; none where the tile is not
// what that is for its own number.
std::optional<Tile> for_any_count(const LoneKernel& lone, const Tile& tile);
Tile for_count(const Tile& any, const Expr& points);

}  // namespace tiny_compile
