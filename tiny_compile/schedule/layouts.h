// Which of a kernel's legal layouts is a good one?
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// For a kernel in which neighbouring rows are neighbours in memory: lanes, and vectors, along the
// rows; registers and warps along the loops. Nothing where layouts cannot, or are no good.
std::optional<Schedule> layouts_of_columns(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
