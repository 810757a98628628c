// The function that transposes a square.
#pragma once

#include <string>

#include "tiny_compile/codegen/calls.h"

namespace tiny_compile {

// The helper of the loops that are turned, where it is among those that kernels call.
std::string turned_helpers(const Calls& calls);

}  // namespace tiny_compile
