// Random legal layouts: no schedule that verifies changes a bit.
#pragma once

#include "tests/fuzz/harness.h"

namespace tiny_compile {

// The program with random layouts for all kernels that can have them, chosen by the program's text.
Program with_random_layouts(const Program& program);

// The default pipeline with them behind `schedule`.
Pipeline layouts_pipeline();

// Seeds first, first + 1, ...: each graph's kernels under random layouts, run as tile programs by
// their interpreter. Their Program's text must parse back equal.
std::vector<FuzzFailure> fuzz_layouts(uint64_t first, int count,
                                      const GraphMaker& make = any_graph);

}  // namespace tiny_compile
