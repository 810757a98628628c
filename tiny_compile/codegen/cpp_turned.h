// Pointwise kernels that read some inputs across their grain: x.t() + y.
#pragma once

#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Writes the kernel's body in squares, for its turned_loads (loops/turned_loads.h); returns its units.
Expr write_turned(KernelText& text, const std::vector<int>& loads);

// The helper of such kernels, where it is among those that kernels call.
std::string turned_helpers(const Calls& calls);

constexpr int64_t kSquare = 128;  // points in a unit: kSquare * kSquare

}  // namespace tiny_compile
