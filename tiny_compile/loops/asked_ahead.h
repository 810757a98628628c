// Which bytes can a GPU's kernel of layouts ask for before it reads them (Schedule::prefetch)?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Elements of a warp in a loop of this layout, where they are neighbours and it has them at once; else 0.
int64_t side_by_side(const Layout& loop);

// The loads of the first pass, over one loop, of which a lane asks for what the block that comes schedule.prefetch
// later has there. Empty where nobody asks.
std::vector<int> asked_of_later_blocks(const Kernel& kernel);

// Of rows that fold, and of each of their passes (sweeps.h): loads that a lane asks for a whole row of, which is over
// `axis`, but for those of passes before it. No passes where no rows fold or nobody asks.
struct AskedOfRow {
  int axis = -1;
  std::vector<int> loads;
};
std::vector<AskedOfRow> asked_of_rows(const Kernel& kernel,
                                      const std::vector<std::vector<int>>& passes);

// "" where schedule.prefetch, which is not 0, has something asked for; else why nothing is. The layouts are legal.
std::string why_nothing_asked(const Kernel& kernel);

}  // namespace tiny_compile
