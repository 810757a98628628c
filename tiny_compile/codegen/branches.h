// Work that only one side of a choice needs, done only where that side is taken.
#pragma once

#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// From now on `text` defines so what is costly. Returns those of `ids` that are no part of a branch.
std::vector<int> with_branches(KernelText& text, const std::vector<int>& ids);

// Of each `where` that the loops alone decide: what is computed only where its condition is true,
// in order. Empty unless some of it is costly. Loads are none of it: they are asked for early, and
// have masks of their own.
std::vector<std::vector<int>> costly_branches(const KernelText& text);

}  // namespace tiny_compile
