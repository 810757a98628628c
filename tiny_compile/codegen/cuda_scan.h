// CUDA kernels for running sums along rows that lie contiguous in memory.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Whether the kernel is one scan, with the stores for the same points that fusion put beside it,
// along memory; and its rows are long enough that a thread alone would waste memory's lines.
bool scans_along_memory(const Program& program, const Kernel& kernel);
KernelEntry write_cuda_scan(CudaText& text, const std::string& function);

}  // namespace tiny_compile
