// One kernel of a program that is interpreted.
#pragma once

#include <vector>

#include "tiny_compile/loops/interpreter.h"

namespace tiny_compile {

// Calls `before` before each block of points. Throws tc::Error for an access outside its buffer;
// notes other errors, as graph/lanes.h does.
void run_kernel(const Kernel& kernel, std::vector<Memory>& memory, const BeforePoints& before);

}  // namespace tiny_compile
