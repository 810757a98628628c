// Which of a kernel's legal layouts is a good one?
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// For a kernel that reduces. Nothing where layouts cannot, or others are as good: of long rows that are
// read again, where one list of loops goes over them, and of long columns that are read once.
std::optional<Schedule> layouts_of(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
