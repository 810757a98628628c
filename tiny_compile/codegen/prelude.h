// The shared math as text: only the definitions that a generated source uses.
#pragma once

#include <string>

#include "tiny_compile/codegen/calls.h"

namespace tiny_compile {

// The definitions of base/prelude*.h that are called, directly or through each other, in the
// order in which the prelude has them, as CUDA or C++. Overloads for double come only where
// doubles are used.
std::string prelude_for(const Calls& calls, bool cuda);

}  // namespace tiny_compile
