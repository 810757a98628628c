// Question: which values does an index take, and how far apart are they?
//
//   min(block*128 + lane*4, 996)   =>   0, 4, 8, ..., 996
//
// Invariant: every value of the index is in its Range; not every one there need be a value. A step
// of 0 says that there is one value only.
#include "tiny_compile/tile/range.h"

#include <algorithm>
#include <numeric>

namespace tiny_compile {
namespace {

bool is_finite(const Range& range) {
  return range.low > -kUnbounded && range.high < kUnbounded;
}

Range of_interval(const Interval& interval) {
  return {interval.low, interval.high, interval.low == interval.high ? 0 : 1};
}

Range sum(const Range& a, const Range& b) {
  const Interval ends = sum_bounds({a.low, a.high}, {b.low, b.high});
  return {ends.low, ends.high, std::gcd(a.step, b.step)};
}

Range scaled(const Range& a, int64_t factor) {
  const Interval ends = product_bounds({a.low, a.high}, {factor, factor});
  const Wide step = Wide{a.step} * factor;
  return {ends.low, ends.high, clamp_to_bounds(step < 0 ? -step : step)};
}

Range quotient(const Range& a, int64_t divisor) {
  const Interval ends = quotient_bounds({a.low, a.high}, {divisor, divisor});
  const bool exact = a.low % divisor == 0 && a.step % divisor == 0;
  return {ends.low, ends.high, exact ? a.step / divisor : 1};
}

Range remainder(const Range& a, int64_t divisor) {
  if (floor_quotient(a.low, divisor) == floor_quotient(a.high, divisor)) {
    const int64_t taken = floor_quotient(a.low, divisor) * divisor;
    return {a.low - taken, a.high - taken, a.step};
  }
  const int64_t step = std::gcd(a.step, divisor), least = floor_remainder(a.low, step);
  return {least, divisor - step + least, step};
}

Range lesser_or_greater(const Range& a, const Range& b, bool lesser) {
  const int64_t apart = a.low > b.low ? a.low - b.low : b.low - a.low;
  const int64_t step = std::gcd(std::gcd(a.step, b.step), apart);
  return lesser ? Range{std::min(a.low, b.low), std::min(a.high, b.high), step}
                : Range{std::max(a.low, b.low), std::max(a.high, b.high), step};
}

Range of_product(const Expr& expr) {
  Range result{1, 1, 0};
  for (const Expr& factor : expr.operands()) {
    const Range next = range_of(factor);
    if (next.low == next.high)
      result = scaled(result, next.low);
    else if (result.low == result.high)
      result = scaled(next, result.low);
    else
      return of_interval(expr.bounds());
  }
  return result;
}

Range of_parts(const Expr& expr) {
  const std::vector<Expr>& parts = expr.operands();
  if (expr.kind() == ExprKind::Mul) return of_product(expr);
  Range result = range_of(parts[0]);
  for (size_t k = 1; k < parts.size(); k++) {
    const Range next = range_of(parts[k]);
    const bool divides = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod;
    if (divides && (next.low != next.high || next.low < 1)) return of_interval(expr.bounds());
    switch (expr.kind()) {
      case ExprKind::Add: result = sum(result, next); break;
      case ExprKind::FloorDiv: result = quotient(result, next.low); break;
      case ExprKind::Mod: result = remainder(result, next.low); break;
      default: result = lesser_or_greater(result, next, expr.kind() == ExprKind::Min);
    }
  }
  return result;
}

}  // namespace

bool Range::has_only_multiples_of(int64_t width) const {
  return low % width == 0 && step % width == 0;
}

Range range_of(const Expr& expr) {
  if (expr.is_constant()) return {expr.constant(), expr.constant(), 0};
  const Range whole = of_interval(expr.bounds());
  if (expr.kind() == ExprKind::Symbol || !is_finite(whole)) return whole;
  for (const Expr& part : expr.operands()) {
    if (!is_finite(of_interval(part.bounds()))) return whole;
  }
  return of_parts(expr);
}

}  // namespace tiny_compile
