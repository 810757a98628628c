// Schedules for some of a kernel's sizes: which is whose, and may they be?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether these numbers are in all of the ranges.
bool hold(const std::vector<SizeRange>& when, const Substitution& numbers);

// The kernel alone under its sized schedule number `n`, with what it may assume of its sizes: their
// bounds are the ranges'. Buffers keep their numbers.
Program for_sizes(const Program& program, const Kernel& kernel, size_t n);

// "" where each schedule is legal for all of its sizes, and no sizes have two; else the reason.
std::string why_wrong_sizes(const Program& program, const Kernel& kernel);

// What is left of them once sizes are known, or bounds are: the schedule that is for all sizes there
// still are becomes the kernel's own.
Kernel with_schedule_for(Kernel kernel, const Substitution& values);

}  // namespace tiny_compile
