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

}  // namespace tiny_compile
