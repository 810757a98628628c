// Kernels that start while others still run.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// On CUDA: launches of few blocks behind others are `early`. Launches stay as they are, so they are
// final. Sizes are numbers.
Program start_early(Program program);

}  // namespace tiny_compile
