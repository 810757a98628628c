// CUDA kernels of which one thread does a whole row: scans, scatters and what mixes them.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

KernelEntry write_cuda_serial(CudaText& text, const std::string& function);

}  // namespace tiny_compile
