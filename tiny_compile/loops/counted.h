// Kernels that do the same to each point, however many there are.
#pragma once

#include "tiny_compile/loops/kernel_key.h"

namespace tiny_compile {

// Whether it goes through its points one by one and touches nothing but each point's own elements
// and single ones: a text that is told the number of points suits all sizes.
bool is_counted(const Kernel& kernel);

// The same for the most points that such a text can count: kernels that differ in their number
// alone become equal.
constexpr int64_t kMostCounted = int64_t{1} << 29;
LoneKernel for_any_count(LoneKernel lone);

// What it does, to how many points whatever: kernels of one key may be started by one function.
KernelKey work_of(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
