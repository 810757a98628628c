// Sums of columns beside the rows of what they add.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A stage behind fuse, of a GPU: sums of columns become part of a kernel that goes over the rows
// of what they add (fold.h), and a kernel behind it. What stays apart is recorded in `refusals`.
Program fold_columns(const Program& program);

}  // namespace tiny_compile
