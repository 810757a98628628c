// Rows of which the last ends early.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A kernel whose reductions count as many elements as a mask leaves, without asking at each. Only for
// text: the extent of such a loop depends on the row.
Kernel with_ends_of_rows(Kernel kernel);

}  // namespace tiny_compile
