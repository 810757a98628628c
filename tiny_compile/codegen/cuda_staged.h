// The text of rows that go through shared memory.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_stage_shape.h"

namespace tiny_compile {

// Copies what is loaded and opens the loop over the block's rows: declares `line`, `row`. The flag
// that a row is one: "live", or "" where all are.
std::string open_staged_rows(CudaText& text, const RowShape& shape, StagedRows& staged);
// Closes the loop over a thread's rows, staged or not, and copies what is stored; a row's warps met
// so many times.
void close_rows(CudaText& text, const RowShape& shape, const StagedRows& staged, int meetings);

// The packs at `e` of staged loads.
void load_staged_packs(CudaText& text, StagedRows& staged, const Spread& spread,
                       const std::vector<int>& ids, const std::vector<bool>& defined);

// One element into memory, or into a tile.
void write_staged_store(CudaText& text, const StagedRows& staged, const Step& step);

// Shared memory of a row's warps, where a block may have several rows at a time.
void declare_shared(CudaText& text, const RowShape& shape, const std::string& type,
                    const std::string& name, int64_t count);
std::string first_of_row(const RowShape& shape, const StagedRows& staged);  // "lane == 0"

}  // namespace tiny_compile
