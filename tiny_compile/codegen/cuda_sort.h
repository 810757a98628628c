// CUDA kernels that sort rows, or merge what is sorted of them.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

KernelEntry write_cuda_sort(CudaText& text, const std::string& function);
KernelEntry write_cuda_ranks(CudaText& text, const std::string& function);  // of any length

}  // namespace tiny_compile
