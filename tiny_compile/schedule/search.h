// Which schedules are worth a measurement, and which of them has won? Values alone: what builds
// and runs them is compile/tune.h.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The kernel's own schedule first, then the cheapest of each other strategy by the model, its own with more and fewer
// registers on a GPU, the cheapest of all, the own one's neighbours, as many as there is room for, then the cheapest
// that are left, each once; `most` at most. A product stays in tiles, or the library's, where it may be that. Sizes must
// be numbers.
std::vector<Schedule> candidates(const Program& program, const Kernel& kernel, size_t most);

// Seconds of each candidate in a turn, number 0 among them; infinite: it was not run.
using Turns = std::vector<std::vector<double>>;

// The median over the turns of candidate 0's time over this one's: what it gains.
double gain_of(const Turns& turns, size_t candidate);

// Those that may yet win: number 0, and what gains within a tenth of the best.
std::vector<size_t> survivors(const Turns& turns);

// The one that gains most, if that is 2 % at least; else number 0.
size_t winner(const Turns& turns);

}  // namespace tiny_compile
