// CUDA kernels of one matmul with its epilogue, in tiles through shared memory.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

KernelEntry write_cuda_matmul(CudaText& text, const std::string& function);

}  // namespace tiny_compile
