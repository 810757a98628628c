// One CUDA kernel that does the work of many: a table says whose block each of its blocks is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Behind the text of one block (CudaText's Start::Block or Counted): the kernel that calls it.
void write_cuda_group(CudaText& text, KernelEntry& entry, int room);

// A function with what it is started with: one kernel, or several by a table.
struct Start {
  std::vector<int> kernels;  // of the Program
  int64_t grid = 0;          // of all of them
};

// How the kernels of a launch are started, in order; those without blocks are left out.
std::vector<Start> starts_of(const std::vector<KernelEntry>& kernels,
                             const std::vector<int>& launch);

// The table's bytes, as tc_table has them (cuda_memory_helpers.cpp), for these kernels of a function;
// addresses are those of the Program's buffers.
std::vector<int64_t> table_of(const std::vector<KernelEntry>& kernels, const Start& start,
                              const std::vector<void*>& addresses);

}  // namespace tiny_compile
