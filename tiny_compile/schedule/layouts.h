// Which of a kernel's legal layouts is a good one?
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// For a kernel that reduces, of up to 2048 elements a row where lanes are rows, up to 1024 where
// they are elements. Nothing where layouts cannot, or others are as good.
std::optional<Schedule> layouts_of(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
