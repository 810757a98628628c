// What a vendor's library does behind its products, on the way to memory.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A stage behind fuse. A product that is left to the library (use_library.h) takes in its one reader
// where one call can do both, of the same matrices: a bias, relu, gelu. What stays apart is
// recorded in `refusals`. The products' axes are collapsed.
Program add_epilogues(const Program& program);

}  // namespace tiny_compile
