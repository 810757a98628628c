// CUDA kernels for a scatter whose places are the same for all columns: an embedding's gradient,
// a histogram. Blocks own parts of the result.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// One base and one scatter into several targets of it, without a mask, whose index is free of the rows:
//   rows(i0: C) { store y[j0*C + i0] for (j0: D) = base
//                 scatter y[at0*C + i0; at0 = index(j1) < D] for (j1: U) = update }
bool scatters_rows(const CudaText& text);

KernelEntry write_cuda_scatter(CudaText& text, const std::string& function);

}  // namespace tiny_compile
