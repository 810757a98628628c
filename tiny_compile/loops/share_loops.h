// Kernel -> Kernel: steps of the same loops go over them together.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The loops of each step are those of the first step whose loops have the same extents, in the
// same order. What is read at the same place is then read once.
Kernel share_loops(Kernel kernel);

}  // namespace tiny_compile
