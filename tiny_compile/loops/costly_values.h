// What a CPU computes once for several loops, and what it must not compute for nothing.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of each scalar, the loops around all of its uses that a size of 0 may keep from turning, if it is one
// that would then read what is not there or raise an error.
std::vector<uint64_t> loops_that_may_not_turn(const Kernel& kernel);

// Of each scalar the axes that have values where it is computed, bit a for axis a, and whether registers have.
inline constexpr uint64_t kRegisters = uint64_t{1} << 63;
std::vector<uint64_t> needs_of(const Kernel& kernel);

// Whether a CPU should rather read it from the caches than compute it again.
bool is_costly_again(const Scalar& scalar);

inline constexpr int64_t kMostKeptBytes = 256 * 1024;  // of a value

// Of all values that a thread's rows keep.
inline int64_t most_kept_bytes(const Machine& machine) {
  return std::min(4 * kMostKeptBytes, machine.l2 / 2);
}

// The values for which that holds that several steps over the same loops use, with these loops; at most
// `most_of_all` bytes of them. `axes`: of each scalar those that it depends on.
std::map<int, std::vector<int>> costly_values(const Kernel& kernel,
                                              const std::vector<uint64_t>& axes,
                                              int64_t most_of_all);

}  // namespace tiny_compile
