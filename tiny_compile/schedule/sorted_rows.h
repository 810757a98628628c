// How many elements of a row does a thread of a GPU sort, or merge, and how long does a sort take?
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Schedule::each of a kernel that is run row by row: what takes least, so far as is known; where a GPU sorts nothing
// in it, the default.
int each_sorted(const Program& program, const Kernel& kernel);

// Seconds that such a kernel's instructions take under its schedule, if it sorts; its sizes are numbers.
std::optional<double> time_of_sort(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
