// The schedule of rows that threads of a GPU scatter together.
#pragma once

#include <optional>
#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that loops/scatter_rules.h names a way for: how many updates a thread sorts, and how many rows a block
// has. Of others what they have without.
Schedule scattered_rows(const Program& program, const Kernel& kernel, Schedule schedule);

// Seconds that a GPU's scatter takes under its schedule, beyond a launch and the bytes that it moves; none of a kernel
// that scatters nothing. Sizes are numbers.
std::optional<double> waits_of_scatter(const Program& program, const Kernel& kernel);

// Who scatters what: "524 blocks, each with 9216 packs of 8 neighbours of the result; .."; "" of other kernels.
std::string who_scatters(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
