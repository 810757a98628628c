// Which chunks of a CPU's rows are added up straight from memory, eight elements at once (Schedule::unroll)?
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Stretches of a row whose elements lie one behind the other in memory: those in which axis + shift
// stays in one multiple of `length`. Of several loops that is the last one, of one loop what its indices
// divide. `wanted`: what the step evaluates.
struct Runs {
  Expr shift, length;
};
std::optional<Runs> runs_of(const Kernel& kernel, const Step& step,
                            const std::vector<int>& wanted);

inline constexpr int64_t kMostParts = 1 << 16;  // chunks' results of a row side by side

// Whether a row of so many elements, which is one of those that end early or not, has chunks that are known to be
// full.
bool has_full_chunks(const Expr& count, bool ends_early);

// Whether what a step evaluates is cheap enough to be written eight times, and goes into no array on the way;
// `has_array`: of the scalars that later steps read again.
bool has_cheap_elements(const Kernel& kernel, const Step& step, const std::vector<int>& wanted,
                        const std::function<bool(int)>& has_array);

// Whether any reduction of a kernel that a CPU's threads do row by row has such chunks of such elements.
bool adds_eighths(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
