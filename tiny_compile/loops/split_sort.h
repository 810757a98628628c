// Long sorts as a kernel that sorts runs, and kernels that merge them.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The longest row that one block of a GPU sorts in shared memory.
inline constexpr int64_t kSortedRun = 2048;

// Whether a kernel is a sort of rows that are longer than what a block sorts, on a GPU.
bool can_split_sort(const Program& program, const Kernel& kernel);

// The same in several kernels, in the order in which they run; adds the temporaries between them.
std::vector<Kernel> split_sort(Program& program, const Kernel& kernel);

}  // namespace tiny_compile
