// Layouts for kernels whose sizes are not numbers.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// For each of some intervals of the kernel's sizes, from 1 on; what they leave is for a schedule
// that takes any size.
std::vector<SizedSchedule> sized_layouts(const Program& program, const Kernel& kernel);

// Intervals of the sizes of its axes, from 1 on, whose elements ints count, and those of more.
std::vector<std::vector<SizeRange>> size_boxes(const Kernel& kernel);

}  // namespace tiny_compile
