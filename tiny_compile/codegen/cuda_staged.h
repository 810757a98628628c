// The text of rows that go through shared memory.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_stage_shape.h"

namespace tiny_compile {

// Copies what is loaded and opens the loop over the block's rows: declares `line`, `row`. The flag
// that a row is one: "live", or "" where all are.
std::string open_staged_rows(CudaText& text, const RowShape& shape, StagedRows& staged);
// Closes it, and copies what is stored; a row's warps met so many times.
void close_staged_rows(CudaText& text, const RowShape& shape, const StagedRows& staged,
                       int meetings);

// The packs at `e` of staged loads.
void load_staged_packs(CudaText& text, StagedRows& staged, const Spread& spread,
                       const std::vector<int>& ids, const std::vector<bool>& defined);

}  // namespace tiny_compile
