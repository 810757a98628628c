// Question: between which values does a sum, product, quotient or remainder lie?
//
//   i in [0, 3], j in [-2, 5]    =>  i*j in [-6, 15],  j/2 in [-1, 2],  j%4 in [0, 3]
//
// Invariant: a low of -kUnbounded means minus infinity and a high of kUnbounded plus infinity.
// Clamping a finite bound to that range only widens its interval, so nothing ever overflows.
#include "tiny_compile/base/interval.h"

#include <algorithm>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

int64_t checked_add(int64_t lhs, int64_t rhs) {
  int64_t result;
  if (__builtin_add_overflow(lhs, rhs, &result)) {
    fail("integer overflow in a size or index: ", lhs, " + ", rhs, " exceeds 64 bits");
  }
  return result;
}

int64_t checked_multiply(int64_t lhs, int64_t rhs) {
  int64_t result;
  if (__builtin_mul_overflow(lhs, rhs, &result)) {
    fail("integer overflow in a size or index: ", lhs, " * ", rhs, " exceeds 64 bits");
  }
  return result;
}

int64_t floor_quotient(int64_t lhs, int64_t rhs) {
  if (rhs <= 0) fail("a size or index is divided by ", rhs, "; divisors must be positive");
  return lhs / rhs - (lhs % rhs < 0);
}

int64_t floor_remainder(int64_t lhs, int64_t rhs) {
  if (rhs <= 0) fail("a size or index is taken modulo ", rhs, "; divisors must be positive");
  return lhs % rhs + (lhs % rhs < 0 ? rhs : 0);
}

int64_t clamp_to_bounds(Wide value) {
  return static_cast<int64_t>(std::clamp<Wide>(value, -kUnbounded, kUnbounded));
}

Interval sum_bounds(Interval a, Interval b) {
  const bool no_low = a.low == -kUnbounded || b.low == -kUnbounded;
  const bool no_high = a.high == kUnbounded || b.high == kUnbounded;
  return {no_low ? -kUnbounded : clamp_to_bounds(Wide{a.low} + b.low),
          no_high ? kUnbounded : clamp_to_bounds(Wide{a.high} + b.high)};
}

Interval product_bounds(Interval a, Interval b) {
  const auto [low, high] = std::minmax(
      {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high});
  return {clamp_to_bounds(low), clamp_to_bounds(high)};
}

Interval quotient_bounds(Interval a, Interval divisor) {
  const int64_t least = std::max<int64_t>(divisor.low, 1), most = std::max(divisor.high, least);
  const int64_t shrunk_low = most == kUnbounded ? 0 : a.low / most;
  const int64_t shrunk_high = most == kUnbounded ? -1 : floor_quotient(a.high, most);
  const int64_t low = a.low >= 0 ? shrunk_low : floor_quotient(a.low, least);
  const int64_t high = a.high < 0 ? shrunk_high : a.high / least;
  return {a.low == -kUnbounded ? -kUnbounded : low, a.high == kUnbounded ? kUnbounded : high};
}

Interval remainder_bounds(Interval a, Interval divisor) {
  const int64_t below =
      divisor.high == kUnbounded ? kUnbounded : std::max<int64_t>(divisor.high, 1) - 1;
  return {0, a.low >= 0 ? std::min(a.high, below) : below};
}

}  // namespace tiny_compile
