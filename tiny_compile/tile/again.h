// May statements be done twice, by some threads of a warp?
#pragma once

#include <string>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// "" where they may, else why not: "reads t0 before it sets it". `once`: they are not, but some threads
// of a warp may go another way than others, and there are no quotients to find out by.
std::string why_not_again(const Tile& tile, const Body& body, bool once);

}  // namespace tiny_compile
