// Which row is a thread's, and which lane of it is it?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_row_shape.h"

namespace tiny_compile {

// Declares `lane` and, where there are some, `warp`; opens the loop over the thread's
// rows, where it has several; declares `row`. The flag that a row is one: "live", or "" where all
// are.
std::string open_rows(CudaText& text, const RowShape& shape);

}  // namespace tiny_compile
