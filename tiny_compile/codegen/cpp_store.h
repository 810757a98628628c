// Stores: plain, or streamed past the caches.
#pragma once

#include <string>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

std::string place_of(const KernelText& text, const Step& step);  // "out_y[i0*64 + j0]"
void write_store(KernelText& text, const Step& step);

// The helpers of those that kernels call; of vectors of so many bytes.
std::string store_helpers(const Calls& calls, int64_t vector);

}  // namespace tiny_compile
