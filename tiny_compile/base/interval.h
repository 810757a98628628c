// Integers that refuse to overflow, and the intervals they lie in.
#pragma once

#include <cstdint>

namespace tiny_compile {

using Wide = __int128;  // holds any sum or product of two int64_t

// Throw tc::Error on overflow, and on a divisor that is not positive.
int64_t checked_add(int64_t lhs, int64_t rhs);
int64_t checked_multiply(int64_t lhs, int64_t rhs);
int64_t floor_quotient(int64_t lhs, int64_t rhs);   // floor_quotient(-5, 4) returns -2
int64_t floor_remainder(int64_t lhs, int64_t rhs);  // floor_remainder(-5, 4) returns 3

// Inclusive bounds. kUnbounded stands for "no bound known" on either side.
struct Interval {
  int64_t low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};
inline constexpr int64_t kUnbounded = int64_t{1} << 62;

int64_t clamp_to_bounds(Wide value);  // into [-kUnbounded, kUnbounded]

// Every result of the operation on members of the intervals. Divisors are taken to be positive.
Interval sum_bounds(Interval a, Interval b);
Interval product_bounds(Interval a, Interval b);
Interval quotient_bounds(Interval a, Interval divisor);   // of floor division
Interval remainder_bounds(Interval a, Interval divisor);  // in [0, divisor)

}  // namespace tiny_compile
