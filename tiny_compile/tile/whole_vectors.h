// Loops whose ends are vectors too.
#pragma once

#include <optional>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// The lanes of a vector, where a CPU's loop of them does its last elements as a whole one, of which some are
// done again: where no turn reads what another has written, and that is faster than one element at a time.
std::optional<int64_t> lanes_of_last(const Program& program, const Tile& tile,
                                     const Statement& loop);

}  // namespace tiny_compile
