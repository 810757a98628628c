// CUDA kernels for rows of integers scattered to few targets: a block does a row, in shared memory.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// ScatterBy::Tables.
KernelEntry write_cuda_shared_scatter(CudaText& text, const std::string& function);

}  // namespace tiny_compile
