// Which schedules may a kernel have? What the search walks over and the fuzzer draws from.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Legal schedules for the Program's machine, each once, in an order that the kernel alone decides,
// `most` at most: of every strategy the values of the fields that its generator reads, and the
// layouts. Left out is what gives the text of another one that stands here, and layouts that only
// deal the same bits to the same levels in another order. Empty for a kernel of symbolic sizes.
std::vector<Schedule> enumerate(const Program& program, const Kernel& kernel,
                                size_t most = 1 << 14);

}  // namespace tiny_compile
