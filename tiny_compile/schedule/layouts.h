// Which of a kernel's legal layouts is a good one?
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// For a kernel that reduces. Nothing where layouts cannot, or others are as good: of most long rows that
// are read again by one list of loops, and of most long columns that are read once.
std::optional<Schedule> layouts_of(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
