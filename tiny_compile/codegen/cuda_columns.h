// CUDA kernels that reduce down columns: neighbouring threads take neighbouring columns.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

KernelEntry write_cuda_columns(CudaText& text, const std::string& function);

}  // namespace tiny_compile
