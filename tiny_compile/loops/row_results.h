// A row's result as it goes from one kernel to the next: an array with an element for each row.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Element `row` of a buffer that has one for each row.
Scalar load_of_row(const Program& program, int buffer, const Expr& row);

// Step `step`'s result, of that dtype, into that element.
Step store_of_row(ScalarTable& table, int step, DType dtype, int buffer, const Expr& row);

}  // namespace tiny_compile
