// Work that only one side of a choice needs, done only where that side is taken.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of each `where` that the loops alone decide, in a kernel of points: what is computed only where its
// condition is true, in order. Empty unless some of it is costly. Loads are none of it: they are asked
// for early, and have masks of their own.
std::vector<std::vector<int>> costly_branches(const Kernel& kernel);

// Whether some `where` of these has work of its own.
bool has_branch(const std::vector<std::vector<int>>& branches);

}  // namespace tiny_compile
