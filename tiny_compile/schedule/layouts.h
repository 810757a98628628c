// Which of a kernel's legal layouts is a good one?
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// For a kernel that goes over loops row by row. Nothing where layouts cannot, and of long columns that are
// read once, where the family of columns may have them (`has_columns`).
std::optional<Schedule> layouts_of(const Program& program, const Kernel& kernel,
                                   bool has_columns);

}  // namespace tiny_compile
