// What do the layouts of a kernel's rows and loops say of them?
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The lists of inner axes that steps go over, each once, in order: what a schedule's loops lay out.
std::vector<std::vector<int>> loops_of(const Kernel& kernel);

int64_t elements_of(const Kernel& kernel,
                    const std::vector<int>& inner);  // of such a list: at most
// Its layout; of no loops, an empty one.
Layout layout_over(const Kernel& kernel, const std::vector<int>& inner);

// The bits of warps or lanes that a layout names; -1 where it names one twice.
int64_t bits_taken(const Layout& layout, Level level);

// Whether all that it does is to store what its loops go over: then blocks may share these.
bool only_stores(const Kernel& kernel);
int64_t blocks_of_loops(const Kernel& kernel);  // that share a row, of those that the grid has

// The grid, of which the loops' blocks are next to each other: one of each for each other.
struct GridParts {
  Expr outer, rows, loops;
  Expr all() const { return outer * rows * loops; }
};
GridParts grid_of(const Kernel& kernel);

// The places of the outer row axes, and the axes and rows that the schedule lays out for each; at most,
// where they depend on sizes.
int64_t outer_rows(const Kernel& kernel);
std::vector<int> axes_laid_out(const Kernel& kernel);
int64_t rows_laid_out(const Kernel& kernel);

int warps_of(const Schedule& schedule);    // of a block, which the layouts name
int cluster_of(const Schedule& schedule);  // blocks of a cluster, likewise

// Whether all lanes of a warp have the same once the bits before number `end` are added, in order: those
// are all that are lanes', and no later one is a thread's own, which lanes may have taken for theirs.
bool lanes_agree(const std::vector<Bit>& bits, size_t end);

}  // namespace tiny_compile
