// The sum of the squared deviations from the mean, in one read.
#pragma once

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// Of an f32 or f64 tensor over `axes` (in [0, rank), ascending), which stay as axes of 1. Of
// nothing it is 0.
Tensor squared_deviations(const Tensor& x, const Sizes& axes);

}  // namespace tiny_compile
