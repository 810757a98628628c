// CUDA kernels without reductions: a thread takes a few neighbouring points.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

KernelEntry write_cuda_pointwise(CudaText& text, const std::string& function);

}  // namespace tiny_compile
