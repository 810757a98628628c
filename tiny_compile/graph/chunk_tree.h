// The contract's tree, over fewer values than a chunk has.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace tiny_compile {

// The upper half of a power of two is added to the lower (`both`), and what is missing changes nothing.
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
