// Integers that sizes are rounded to.
#pragma once

#include <bit>
#include <cstdint>

namespace tiny_compile {

// How many pieces of `size` hold `count` >= 0: 1000 in pieces of 256 are 4.
constexpr int64_t ceil_divide(int64_t count, int64_t size) { return (count + size - 1) / size; }

constexpr bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// The least power of two that is not less: how many leaves the tree over so many elements has.
constexpr int64_t power_of_two_from(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

// Of a power of two.
constexpr int log2_of(int64_t power) { return std::countr_zero(static_cast<uint64_t>(power)); }

}  // namespace tiny_compile
