// Which layouts lie next to a good one?
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Legal ones that deal a kernel's rows and elements as its own layout does, but for one level that has twice or half as
// much, or one that has twice and another that has half; those of one level first. None where no deal makes the
// kernel's own: by way of shared memory, where rows fold, of other strategies. Sizes must be numbers.
std::vector<Schedule> neighbours(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
