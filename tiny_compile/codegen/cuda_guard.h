// How CUDA C asks whether a place that data chose is one that there is.
#pragma once

#include "tiny_compile/codegen/cuda_arrays.h"

namespace tiny_compile {

// "fits_0_50257", where a row has asked already; else the question.
std::string is_in_range(const CudaTile& t, int chosen, const Expr& limit);

// Behind the definition of a scalar what rows ask about it. A branch that may raise an error would keep
// elements' loads in its order.
//
//   const long long load_0 = in_index[i0];
//   const bool fits_0_50257 = tc_in_range(load_0, 50257);
void write_questions(const CudaTile& t, int chosen);

}  // namespace tiny_compile
