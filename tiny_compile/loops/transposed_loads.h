// Loads of points that run across the grain of what they read: x.t() + y.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

inline constexpr int64_t kSquare =
    128;  // elements of a side at most, and of a row of its array

// The axis along which a load is contiguous while the last row axis strides; -1 for others.
int transposed_axis(const Kernel& kernel, const Scalar& load);

// Loads that neighbouring columns (the last row axis) find far apart and neighbouring rows side
// by side; empty where there are none, or squares would not help.
std::vector<int> transposed_loads(const Kernel& kernel);

// Bytes of L2 that the squares of these loads take.
int64_t bytes_of_squares(const Kernel& kernel);

// Whether a CPU's thread transposes squares of them, as its schedule (keep) says: else it reads them where they lie.
bool has_squares(const Kernel& kernel);

}  // namespace tiny_compile
