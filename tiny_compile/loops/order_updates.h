// A scatter's updates in the order of their places: each target finds its own side by side.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether a kernel is one scatter on a GPU, whose index is the same for all rows, with so many updates
// that not every block should read the whole index.
bool can_order_updates(const Program& program, const Kernel& kernel);

// Whether a target has few enough updates to add one after the other, as far as one may know, and
// their order shows: integers are added up in chunks sooner than they are sorted.
bool has_short_chains(const Kernel& kernel);

// The kernels in its place: the sort (in runs and merges, where it is long), and the scatter by its
// result. Adds the buffers between them. The same bits.
std::vector<Kernel> order_updates(Program& program, const Kernel& kernel);

// "" where a Scatter step's order, if it has one, is the sort of its index that an earlier kernel
// has made; else the reason.
std::string why_wrong_order(const Program& program, const Kernel& kernel, int number);

}  // namespace tiny_compile
