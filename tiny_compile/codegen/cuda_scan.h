// CUDA kernels for scans, by groups of 16 that threads scan side by side.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Of a kernel that scans_in_groups (cuda_scan_shape.h).
KernelEntry write_cuda_scan(CudaText& text, const std::string& function);

}  // namespace tiny_compile
