// Which row is a thread's, and which lane of it is it?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_staged.h"

namespace tiny_compile {

// Declares `lane` and, as far as there are any, `warp` and `rank`; opens the loop over the thread's
// rows, where it has several; declares `row`. The flag that a row is one: "live", or "" where all
// are. Blocks of a cluster must know of each other (tc_blocks_are_there) before they send.
std::string open_rows(CudaText& text, const RowShape& shape, StagedRows& staged,
                      const std::vector<std::vector<int>>& passes);

}  // namespace tiny_compile
