// Many small independent kernels in one launch.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// On CUDA: kernels of the same work (work_of, counted.h) that do not wait for each other come into
// one launch, as many as a table of their buffers has room for. Kernels and launches may change
// their order. Sizes are numbers. `refusals` gets what stays alone though there are others like it.
Program group_launches(const Program& program);

// Kernels that use so many buffers each that one launch can have.
int most_in_launch(size_t buffers);

// Of each kernel how many others its function's table has room for; 0: it has a function of its own.
// Kernels of a launch that do the same work share one.
std::vector<int> rooms_of(const Program& program);

}  // namespace tiny_compile
