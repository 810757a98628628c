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

// Whether one of a kernel's loops does not turn for these numbers: then it runs as a kernel, for an index
// may divide by what is 0.
bool has_empty_loop(const Kernel& kernel, const Substitution& numbers);

}  // namespace tiny_compile
