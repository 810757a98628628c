// How large are the tiles of a product?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that can be tiled (loops/legal_schedule.h): its rows and columns are the last row axes. A CPU's
// are its registers' (codegen/cpp_matmul).
Schedule product_tiles(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
