// Which elements of a row does nobody look at?
#pragma once

#include <vector>

#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {

// Conditions of which one is false only where nobody looks at what the load reads: of none of a vector's
// elements. Empty where all may matter.
std::vector<Within> wanted(const Kernel& kernel, const VectorAxis& vector, int load);

}  // namespace tiny_compile
