// Question: which part of an index does a division or remainder see?
//
//   (i*1024 + j)/1024            =>  i              for j in [0, 1023]
//   (i*1024 + j)%2048            =>  j + (i%2)*1024
//   (x%32)/8                     =>  (x/8)%4
//
// Division is floor division, so each rule holds for negative numerators too. x/d and x%d take
// the same split of x, which is what lets a sum recombine them into x.
// Lesson: bounds, not patterns, are what makes an index simplifier strong.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>

#include "tiny_compile/base/expr_parts.h"

namespace tiny_compile {

using namespace parts;

namespace {

struct Division {
  Expr quotient, rest;  // x == quotient*d + rest
};

// Of (8*i + j + 9) by 4: 2*i + 2 and j + 1.
Division divide_by_constant(const Expr& x, int64_t d) {
  std::vector<Expr> quotients, rests;
  for (const Expr& term : summands(x)) {
    const int64_t c = coefficient_of(term);
    const int64_t rest = term.is_constant() ? floor_remainder(c, d) : c % d ? c : 0;
    const int64_t quotient = rest == c ? 0 : floor_quotient(c, d);
    if (quotient) quotients.push_back(with_coefficient(term, quotient));
    if (rest) rests.push_back(with_coefficient(term, rest));
  }
  return {sum_of(std::move(quotients)), sum_of(std::move(rests))};
}

// term / divisor where both are single terms and the division is exact.
std::optional<Expr> exact_quotient(const Expr& term, const Expr& divisor) {
  const Wide a = coefficient_of(term), b = coefficient_of(divisor);
  if (a % b != 0 || a / b > INT64_MAX) return std::nullopt;
  const std::span<const Expr> all = atoms_of(term), some = atoms_of(divisor);
  if (!std::includes(all.begin(), all.end(), some.begin(), some.end(), comes_before)) {
    return std::nullopt;
  }
  std::vector<Expr> left;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(),
                      std::back_inserter(left), comes_before);
  return product(left) * static_cast<int64_t>(a / b);
}

// Takes out multiples of d while that makes the rest shorter: i*n + i + j by n + 1 gives i, j.
Division divide_by_terms(Expr x, const Expr& d) {
  Expr quotient = 0;
  for (size_t i = 0; i < summands(x).size();) {
    const std::optional<Expr> part = exact_quotient(summands(x)[i++], summands(d)[0]);
    if (!part) continue;
    const Expr rest = x - *part * d;
    if (!rest.is_constant(0) && summands(rest).size() >= summands(x).size()) continue;
    quotient = quotient + *part;
    x = rest;
    i = 0;
  }
  return {quotient, x};
}

Division divide_terms(const Expr& x, const Expr& d) {
  return d.is_constant() ? divide_by_constant(x, d.constant()) : divide_by_terms(x, d);
}

// x / d where the bounds leave one value only.
std::optional<int64_t> known_quotient(const Expr& x, const Expr& d) {
  const Interval q = quotient_bounds(x.bounds(), d.bounds());
  if (q.low == q.high && q.low > -kUnbounded && q.high < kUnbounded) return q.low;
  if (!d.is_constant() && x.bounds().low >= 0 && is_at_most(x, d, 1)) return 0;
  return std::nullopt;
}

// x == whole*d + rest*scale + low with scale | d and 0 <= low < scale, hence
//   x / d == whole + rest / (d/scale)    and    x % d == (rest % (d/scale))*scale + low.
struct Split {
  Expr whole, rest, scale = 1, low;
};

// The largest product that divides both terms: of 6*i*n and 4*n*m, 2*n.
Expr common_divisor(const Expr& lhs, const Expr& rhs) {
  const std::span<const Expr> left = atoms_of(lhs), right = atoms_of(rhs);
  std::vector<Expr> atoms;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                        std::back_inserter(atoms), comes_before);
  return product(atoms) * std::gcd(coefficient_of(lhs), coefficient_of(rhs));
}

// What to look for in a split: divisors of d that divide some term of x, largest first.
std::vector<Expr> common_scales(const Expr& x, const Expr& d) {
  std::vector<Expr> scales;
  for (const Expr& term : summands(x)) {
    if (term.is_constant()) continue;
    const Expr scale = common_divisor(term, d);
    const bool is_known = std::find(scales.begin(), scales.end(), scale) != scales.end();
    const bool is_useful = !scale.is_constant(1) && scale != d && scale.bounds().low >= 0;
    if (is_useful && !is_known) scales.push_back(scale);
  }
  std::sort(scales.begin(), scales.end(), [](const Expr& lhs, const Expr& rhs) {
    const size_t left = atoms_of(lhs).size(), right = atoms_of(rhs).size();
    return left != right ? left > right : compare(lhs, rhs) > 0;
  });
  return scales;
}

Split split(const Expr& x, const Expr& d) {
  const auto [whole, rest] = divide_terms(x, d);
  if (const auto k = known_quotient(rest, d)) return {whole + *k, 0, d, rest - d * *k};
  for (const Expr& scale : common_scales(rest, d)) {
    const auto [inner, low] = divide_terms(rest, scale);
    if (const auto k = known_quotient(low, scale)) {
      return {whole, inner + *k, scale, low - scale * *k};
    }
  }
  return {whole, rest, 1, 0};
}

Expr quotient_node(const Expr& x, const Expr& d) {
  int64_t unused;
  const Expr* inner = x.is_constant() ? nullptr : x.operands().data();
  // (x/a)/b  =>  x/(a*b)
  const bool is_quotient =
      x.kind() == ExprKind::FloorDiv &&
      !__builtin_mul_overflow(coefficient_of(inner[1]), coefficient_of(d), &unused);
  if (is_quotient) return floor_div(inner[0], inner[1] * d);
  // (x%(a*b))/b  =>  (x/b)%a
  if (x.kind() == ExprKind::Mod) {
    const auto [a, rest] = divide_terms(inner[1], d);
    if (rest.is_constant(0)) return mod(floor_div(inner[0], d), a);
  }
  return make_node(ExprKind::FloorDiv, {x, d});
}

// The term c*(x%a) without its remainder, c*x, where that is the same modulo d: d | c*a.
std::optional<Expr> without_mod(const Expr& term, const Expr& d) {
  for (const Expr& atom : atoms_of(term)) {
    if (atom.kind() != ExprKind::Mod) continue;
    const Expr common = without_atom(term, atom);
    const bool is_multiple = divide_terms(common * atom.operands()[1], d).rest.is_constant(0);
    if (is_multiple) return common * atom.operands()[0];
  }
  return std::nullopt;
}

Expr remainder_node(const Expr& x, const Expr& d) {
  for (const Expr& term : summands(x)) {
    if (const auto inner = without_mod(term, d)) return mod(x - term + *inner, d);
  }
  return make_node(ExprKind::Mod, {x, d});
}

}  // namespace

Expr floor_div(const Expr& lhs, const Expr& rhs) {
  if (rhs.is_constant(1)) return lhs;
  if (rhs.is_constant() && (lhs.is_constant() || rhs.constant() <= 0)) {
    return floor_quotient(coefficient_of(lhs), rhs.constant());
  }
  const Split parts = split(lhs, rhs);
  if (parts.scale.is_constant(1)) return parts.whole + quotient_node(parts.rest, rhs);
  return parts.whole + floor_div(parts.rest, divide_terms(rhs, parts.scale).quotient);
}

Expr mod(const Expr& lhs, const Expr& rhs) {
  if (rhs.is_constant(1)) return 0;
  if (rhs.is_constant() && (lhs.is_constant() || rhs.constant() <= 0)) {
    return floor_remainder(coefficient_of(lhs), rhs.constant());
  }
  const Split parts = split(lhs, rhs);
  if (parts.scale.is_constant(1)) return remainder_node(parts.rest, rhs);
  const Expr upper = mod(parts.rest, divide_terms(rhs, parts.scale).quotient);
  return upper * parts.scale + parts.low;
}

Expr ceil_div(const Expr& lhs, const Expr& rhs) { return floor_div(lhs + rhs - 1, rhs); }

}  // namespace tiny_compile
