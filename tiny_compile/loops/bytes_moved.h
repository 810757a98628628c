// What some of a kernel's loads move, beside bytes_moved of program.h.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Bytes that the kernel reads for the scalars marked in `wanted`: each place once, so of rows that
// lie apart in a larger array those alone.
int64_t bytes_read(const Program& program, const Kernel& kernel,
                   const std::vector<bool>& wanted);

// The same as bytes_moved, but of each array what one access alone reaches: several may reach the same places.
int64_t bytes_moved_at_least(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
