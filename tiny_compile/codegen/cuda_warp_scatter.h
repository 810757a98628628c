// CUDA kernels for a scatter of which each row has places of its own: a warp does a row.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Stores and scatters alone, and either rows that are too few for a thread each or updates that
// go in chunks:
//   rows(i0: R) { store y[i0*D + j0] for (j0: D) = base
//                 scatter y[i0*D + at0; at0 = index(i0, j1) < D] for (j1: U) = update }
bool scatters_in_warps(const Program& program, const Kernel& kernel);

KernelEntry write_cuda_warp_scatter(CudaText& text, const std::string& function);

}  // namespace tiny_compile
