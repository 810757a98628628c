// Which results of a CPU can go past the caches?
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Elements that a block of a result has in L1 before it is sent out: reads and writes take turns often (of
// 1024, AdamW took 1.3 times as long).
inline constexpr int64_t kStreamed = 128;

// Stores that share their loops: all of a kernel's points, of rows those that follow each other over the same axes.
std::vector<std::vector<const Step*>> stores_together(const Kernel& kernel);

// Whether all of them, in a loop along this axis, fill whole lines one after the other that the kernel does not
// read, and L1 holds their blocks.
bool can_stream(const Program& program, const Kernel& kernel,
                const std::vector<const Step*>& stores, const Axis& along);

// Whether some stores of a kernel can that goes by points or by rows, as a schedule says; others are written as ever.
bool has_streamed_stores(const Program& program, Kernel kernel, const Schedule& schedule);

}  // namespace tiny_compile
