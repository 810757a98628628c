// CUDA kernels without reductions whose loads and stores run along different axes.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Whether loads walk across the grain of the last row axis, and tiles through shared memory
// make both sides contiguous.
bool is_transposed(const Kernel& kernel);
KernelEntry write_cuda_transposed(CudaText& text, const std::string& function);

// How far neighbours along `symbol` lie apart; -1 where that is not the same everywhere.
int64_t distance(const Expr& index, const Expr& symbol);

}  // namespace tiny_compile
