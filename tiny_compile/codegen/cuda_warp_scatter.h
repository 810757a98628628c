// CUDA kernels for a scatter of which each row has places of its own: a warp does a row.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// ScatterBy::Warps.
KernelEntry write_cuda_warp_scatter(CudaText& text, const std::string& function);

}  // namespace tiny_compile
