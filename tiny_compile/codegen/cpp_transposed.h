// The function that transposes a square.
#pragma once

#include <cstdint>
#include <string>

#include "tiny_compile/codegen/calls.h"

namespace tiny_compile {

// The helper of the loops that are transposed, where it is among those that kernels call; of vectors of so many
// bytes.
std::string transposed_helpers(const Calls& calls, int64_t vector);

}  // namespace tiny_compile
