// CUDA kernels that reduce along a row: threads of one warp, or several warps, share a row.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Whether rows of this length are within what the family can do; else one thread takes a row.
bool fits_cuda_rows(const Kernel& kernel);

KernelEntry write_cuda_rows(CudaText& text, const std::string& function);

}  // namespace tiny_compile
