// Where in a list do places end that pass? A warp asks for 32 at a time.
#pragma once

#include <functional>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Of `low` .. `high` - 1, at most `range` places of which the first ones pass and no others: the first that does
// not, in an array of the thread's own; `high` where all do. All lanes of a warp come, with the same low and high
// (scalars of `integer`). passes(body, place): whether the place, a scalar, does; the last place stands for those
// beyond it.
int first_that_fails(Tile& tile, Body& body, DType integer, int low, int high, int64_t range,
                     const std::function<int(Body&, int place)>& passes);

}  // namespace tiny_compile
