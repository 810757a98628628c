// Stores past the caches.
#pragma once

#include <string>

#include "tiny_compile/codegen/calls.h"

namespace tiny_compile {

// The helpers of those that kernels call; of vectors of so many bytes.
std::string store_helpers(const Calls& calls, int64_t vector);

}  // namespace tiny_compile
