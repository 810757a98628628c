// What some of a kernel's loads move, beside bytes_moved of program.h.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Bytes that the kernel reads for the scalars marked in `wanted`: each place once, so of rows that
// lie apart in a larger array those alone.
int64_t bytes_read(const Program& program, const Kernel& kernel,
                   const std::vector<bool>& wanted);

}  // namespace tiny_compile
