// Which buffer is written over another one, whose values nobody reads any more?
#pragma once

#include <string>
#include <utility>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether a buffer is both read and written.
bool loads_what_it_stores(const Program& program, const Kernel& kernel);

// The buffer whose bytes this one has: itself, or the end of `over` after `over`.
int storage_of(const Program& program, int buffer);

// Of a kernel that knows only storages: whether each point overwrites at most what the point
// itself has read, so that threads may share its rows.
bool overwrites_in_place(const Program& program, const Kernel& kernel);

// Whether such a kernel has reductions and stores only, and a point overwrites at most what it has read
// itself: what many threads may do for one row.
bool is_cooperative(const Program& program, const Kernel& kernel);

// Outputs take the bytes of donated inputs, temporaries those of temporaries, wherever no bit
// changes by it. A kernel's stores may change their order for that.
Program overwrite_in_place(Program program);

// A buffer that is `over` another without the right to be, and why not; {-1, ""} where none is.
std::pair<int, std::string> why_not_over(const Program& program);

}  // namespace tiny_compile
