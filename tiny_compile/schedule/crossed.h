// What if some of a row's arrays lie along its elements, and others along the rows?
#pragma once

#include <optional>

#include "tiny_compile/schedule/deal.h"

namespace tiny_compile {

// Lanes are elements, as the deal says, and what lies along the rows goes by way of shared
// memory: a block has as many rows as make a piece of memory.
std::optional<Schedule> crossed_rows(const Program& program, const Kernel& kernel,
                                     const Deal& deal);

// The same of long rows, which the warps of a cluster's blocks have a chunk each of, all of it at a time.
std::optional<Schedule> crossed_long_rows(const Program& program, const Kernel& kernel,
                                          const Deal& chunk);

// Lanes are rows, and what lies along the elements goes by way of shared memory.
std::optional<Schedule> crossed_columns(const Program& program, const Kernel& kernel,
                                        const Deal& deal);

}  // namespace tiny_compile
