// Sums of few terms as formulas.
#pragma once

#include <bit>
#include <optional>
#include <vector>

#include "tiny_compile/loops/group.h"

namespace tiny_compile {

// The producer's store to `buffer` alone, without reductions: each sum of few terms that it needs
// is written out, in the contract's order. Nothing if it needs no sum, or another reduction.
std::optional<Group> with_sums_written_out(const Group& producer, int buffer);

// The same of a kernel that does nothing else, if neighbouring points of long rows share some of
// what they read without a mask, as windows a step apart do; else the kernel as it is.
Kernel with_windows_written_out(const Program& program, Kernel kernel);

// A CPU's product of few terms in which nothing is multiplied twice, as a depthwise convolution's:
// points that need no panels; else the kernel as it is.
Kernel with_thin_dots_written_out(const Program& program, Kernel kernel);

// The contract's tree over fewer values than a chunk has: the upper half of a power of two is added to
// the lower, and what is missing changes nothing.
template <typename Value, typename Both>
Value in_order(std::vector<Value> values, const Both& both) {
  while (values.size() > 1) {
    const size_t half = std::bit_ceil(values.size()) / 2;
    for (size_t k = half; k < values.size(); k++)
      values[k - half] = both(values[k - half], values[k]);
    values.resize(half);
  }
  return values[0];
}

}  // namespace tiny_compile
