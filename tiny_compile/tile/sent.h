// Does each element that a block waits for come, and once?
#pragma once

#include <string>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// "" where it does, in every cluster; else why not: "given3[8] is sent twice". For a tile whose integers
// can be read where they are (tile/known.h).
std::string why_not_sent_once(const Tile& tile);

}  // namespace tiny_compile
