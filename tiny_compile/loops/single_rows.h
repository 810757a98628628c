// Rows of one element are points.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// On cuda, where sizes are numbers: with each reduction of a single element replaced by that element, if
// the kernel then does nothing but store points; else as it was.
Kernel with_single_rows_as_points(const Program& program, Kernel kernel);

}  // namespace tiny_compile
