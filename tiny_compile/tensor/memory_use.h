// How many bytes do tensors hold on a device, and how many did they at most? As
// torch.cuda.memory_allocated and max_memory_allocated: what was asked for, not what an allocator
// keeps in free blocks.
//
//   reset_peak_memory(cpu);
//   f(x);                  // a result of 4096 bytes, an arena of 1 MiB beside it
//   memory_use(cpu)    =>  bytes as before, peak 1052672 above
#pragma once

#include <cstdint>

#include "tiny_compile/tensor/storage.h"

namespace tiny_compile {

struct MemoryUse {
  int64_t bytes = 0;  // now
  int64_t peak = 0;   // the most since the last reset_peak_memory
};

// May be called from any thread; of the whole process.
MemoryUse memory_use(Device device);
void reset_peak_memory(Device device);  // to what is held now

// For allocators: so many bytes more, or below 0 fewer. Not by two threads at once for a device:
// an allocator holds a lock anyhow.
void count_memory(Device device, int64_t bytes);

}  // namespace tiny_compile
