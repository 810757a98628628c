// Rows that indices divide, as several.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel of points: rows cut where indices divide them, so that these become plain sums, and
// loops need no division for each point. As it is where the last loop would turn too few times to
// be worth it.
Kernel with_divided_rows_apart(Kernel kernel);

// A few neighbours of the last row stored by one point, as steps of their own: what depends on which
// of them it is, is known. Only for text: as it is where the last row is long.
Kernel with_short_last_row_unrolled(Kernel kernel);

}  // namespace tiny_compile
