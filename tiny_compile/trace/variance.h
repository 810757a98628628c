// The mean and the sum of the squared deviations from it, in one read.
#pragma once

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct MeanAndM2 {
  Tensor mean, m2;
};

// Of an f32 or f64 tensor over `axes` (in [0, rank), ascending), which stay as axes of 1. Of
// nothing they are NaN and 0.
MeanAndM2 mean_and_m2(const Tensor& x, const Sizes& axes);

// The latter alone. Its derivative takes mean(x), which whoever asks for a variance has mostly asked for.
Tensor squared_deviations(const Tensor& x, const Sizes& axes);

}  // namespace tiny_compile
