// A tile of symbolic sizes, and the same with numbers or other symbols for them.
#pragma once

#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Names stay, what they are below changes: of n = 37, `k: n = lane` becomes `k: 37 = lane`.
Tile substitute(const Tile& tile, const Substitution& values);

// Numbers within the bounds of these sizes: the ends, each size's own against the others', and some
// between.
std::vector<Substitution> some_numbers(const std::vector<Expr>& sizes);

}  // namespace tiny_compile
