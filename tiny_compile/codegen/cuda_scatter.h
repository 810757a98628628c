// CUDA kernels for a scatter whose places are the same for all columns: an embedding's gradient,
// a histogram. Blocks own parts of the result.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// ScatterBy::Runs.
KernelEntry write_cuda_scatter(CudaText& text, const std::string& function);

}  // namespace tiny_compile
