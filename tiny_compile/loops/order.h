// In which order do launches need the least memory?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Most bytes of temporaries alive at once, in the program's order. Sizes are numbers.
int64_t peak_bytes(const Program& program);

// The same launches in an order of less memory, if one is found that saves a twentieth of the
// peak; else the program as it is, whose order is the user's.
Program order_launches(const Program& program);

// The same kernels in these launches, numbered in their order.
Program with_launches(const Program& program, const std::vector<std::vector<int>>& launches);

}  // namespace tiny_compile
