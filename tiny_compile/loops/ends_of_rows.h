// Rows of which the last ends early.
#pragma once

#include <map>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A kernel whose reductions count as many elements as a mask leaves, without asking at each. Only for
// text: the extent of such a loop depends on the row.
Kernel with_ends_of_rows(Kernel kernel);

// Of each axis the whole extent: what is known of it where it is cut stands around the loops.
Kernel over_whole_axes(Kernel kernel);

// Such a kernel over whole axes, and of each that ends early how many elements the row at hand has.
struct EndedRows {
  Kernel kernel;
  std::map<int, Expr> ends;
};
EndedRows ended_rows(const Kernel& kernel);

}  // namespace tiny_compile
