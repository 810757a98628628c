// The schedule of rows that threads of a GPU scatter together.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that loops/scatter_rules.h names a way for: how many updates a thread sorts, and how many rows a block
// has. Of others what they have without.
Schedule scattered_rows(const Program& program, const Kernel& kernel, Schedule schedule);

}  // namespace tiny_compile
