// How are a kernel's points dealt out to the threads of a GPU?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// schedule pointwise with a layout, of a kernel of points whose sizes are numbers. `any_count`: of one whose
// function others of other sizes share (loops/counted.h).
Schedule points_laid_out(const Program& program, Kernel kernel, bool any_count);

// What a point costs in packs of `vector`: lines of memory that a warp reads for 32 of them, and what is done once
// a pack, as lines that would take as long.
double lines_of_packs(const Program& program, const Kernel& kernel, int vector);

}  // namespace tiny_compile
