// Memory that is read soon is asked for: it comes to the L2 cache while a row is computed.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// At the start of a row that a warp folds: what later passes read of it first.
void ask_for_later_passes(CudaText& text, const std::vector<std::vector<int>>& passes);

// Behind its last reduction: what the first pass reads of the warp's next row.
void ask_for_next_turn(CudaText& text, const std::vector<std::vector<int>>& passes);

}  // namespace tiny_compile
