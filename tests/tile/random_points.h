// Random kernels of points on a CPU.
#pragma once

#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/streamed_stores.h"

namespace tiny_compile {

// Scheduled; the results of every second seed go past the caches.
inline Program random_points(uint64_t seed, int size) {
  Program program =
      run_pipeline(until(default_pipeline(), "plan_memory"), random_graph(seed, size), true)
          .program;
  for (Kernel& kernel : program.kernels)
    if (seed % 2 && kernel.schedule->strategy == Strategy::Pointwise)
      kernel.schedule->stream = has_streamed_stores(program, kernel, *kernel.schedule);
  return program;
}

}  // namespace tiny_compile
