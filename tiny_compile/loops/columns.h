// Which kernels go down the columns of a matrix, and are slower for doing more than that?
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Elements of the longest reduction that goes down a column, its neighbours further apart in
// memory than those of neighbouring rows of the kernel; 0 where none does. `rows`: the axes that
// are rows, slowest first.
int64_t column_length(const Kernel& kernel, const std::vector<int>& rows);

// Whether these columns are so long, and so much in all, that a kernel has to go down them alone.
bool has_long_columns(const Program& program, const Kernel& kernel,
                      const std::vector<int>& rows);

// Whether points that are stored anyway are better computed elsewhere than on the way down.
bool is_apart_from_points(const Program& program, const Kernel& kernel,
                          const std::vector<int>& rows);

// Whether its loops wait for none of its reductions: then all of them are one pass.
bool goes_once(const Kernel& kernel);

}  // namespace tiny_compile
