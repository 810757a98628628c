// How many blocks does a multiprocessor hold at a time, and what runs out first?
//
//   h200, 256 threads of 64 elements   =>   8 by threads, 2 by registers: 2 blocks
#pragma once

#include <cstdint>

#include "tiny_compile/loops/machine.h"

namespace tiny_compile {

// Blocks that each of a multiprocessor's stores has room for.
struct Occupancy {
  int64_t by_threads = 0, by_registers = 0, by_shared = 0;
  int64_t most = 0;           // whatever they need
  int64_t blocks() const;     // at least 1: one that is too large has its registers spilled
  const char* limit() const;  // "threads", "registers", "shared memory" or "block slots"
};

// Of blocks of so many threads, which hold so many elements each; a thread's other registers are
// estimated, since the compiler alone knows them. `shared`: bytes a block.
Occupancy occupancy_of(const Machine& machine, int64_t threads, int64_t elements,
                       int64_t shared);

}  // namespace tiny_compile
