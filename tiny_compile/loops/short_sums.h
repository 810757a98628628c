// Sums of few terms as formulas.
#pragma once

#include <optional>

#include "tiny_compile/loops/group.h"

namespace tiny_compile {

// The producer's store to `buffer` alone, without reductions: each sum of few terms that it needs
// is written out, in the contract's order. Nothing if it needs no sum, or another reduction.
std::optional<Group> with_sums_written_out(const Group& producer, int buffer);

// The same of a kernel that does nothing else, if neighbouring points of long rows share some of
// what they read without a mask, as windows a step apart do; else the kernel as it is.
Kernel with_windows_written_out(const Program& program, Kernel kernel);

// For a CPU: a product of few terms in which nothing is multiplied twice, as a depthwise convolution's:
// points that need no panels; else the kernel as it is.
Kernel with_thin_dots_written_out(Kernel kernel);

}  // namespace tiny_compile
