// How are a kernel's points dealt out to the threads of a GPU?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// schedule pointwise with a layout, of a kernel of points whose sizes are numbers. `any_count`: of one whose
// function others of other sizes share (loops/counted.h).
Schedule points_laid_out(const Program& program, Kernel kernel, bool any_count);

}  // namespace tiny_compile
