// CUDA kernels for rows of integers scattered to few targets: a block does a row, in shared memory.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// One base and one scatter_add of integers into all of it, whose targets fit in shared memory, and
// whose index lies along memory:
//   rows(i0: C) { store y[j0*C + i0] for (j0: D) = base
//                 scatter y[at0*C + i0; at0 = index(i0, j1) < D] for (j1: U) = scatter_add update }
bool scatters_to_shared_memory(const CudaText& text);

KernelEntry write_cuda_shared_scatter(CudaText& text, const std::string& function);

}  // namespace tiny_compile
