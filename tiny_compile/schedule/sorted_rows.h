// How many elements of a row does a thread of a GPU sort, or merge?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Schedule::each of a kernel that is run row by row; where a GPU sorts nothing in it, the default.
int each_sorted(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
