// Question: when are two sums of products the same?
//
//   (i + 1)*4 - 4                =>  i*4
//   (x/32)*32 + x%32             =>  x
//   x - (x/32)*32                =>  x%32
//
// A sum is a sorted list of terms, so adding is merging. Products distribute over sums. The two
// rules beyond that put the halves of a division together again, in recombine_pair, and name what
// is left of a whole without one of them, in remainder_left.
#include "tiny_compile/base/expr_parts.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

using namespace parts;

namespace {

constexpr size_t kMaxTerms = 4096;  // (a+b)*(c+d)*... doubles with each factor

Expr scale(const Expr& expr, int64_t coefficient) {
  if (coefficient == 1) return expr;
  if (coefficient == 0) return 0;
  std::vector<Expr> terms;
  for (const Expr& term : summands(expr)) {
    terms.push_back(
        with_coefficient(term, checked_multiply(coefficient_of(term), coefficient)));
  }
  return sum_of(std::move(terms));
}

Expr multiply_terms(const Expr& lhs, const Expr& rhs) {
  const std::span<const Expr> left = atoms_of(lhs), right = atoms_of(rhs);
  std::vector<Expr> atoms;
  std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(atoms),
             comes_before);
  const int64_t coefficient = checked_multiply(coefficient_of(lhs), coefficient_of(rhs));
  if (atoms.empty()) return coefficient;
  if (atoms.size() == 1) return with_coefficient(atoms[0], coefficient);
  return with_coefficient(make_node(ExprKind::Mul, std::move(atoms)), coefficient);
}

const Expr* find_atom(const Expr& term, ExprKind kind) {
  for (const Expr& atom : atoms_of(term)) {
    if (atom.kind() == kind) return &atom;
  }
  return nullptr;
}

bool has_term(const Expr& sum, const Expr& term) {
  const auto all = summands(sum);
  return std::find(all.begin(), all.end(), term) != all.end();
}

bool product_fits(const Expr& lhs, const Expr& rhs) {
  int64_t result;
  return !__builtin_mul_overflow(coefficient_of(lhs), coefficient_of(rhs), &result);
}

// A term (x%a)*common, and the term that would complete it to x*common.
struct Remainder {
  Expr x, a, common, quotient, missing;
};

Remainder remainder_of(const Expr& term, const Expr& atom) {
  Remainder result{atom.operands()[0], atom.operands()[1], without_atom(term, atom), 0, 0};
  result.quotient = floor_div(result.x, result.a);
  result.missing = result.quotient * result.a * result.common;
  return result;
}

// The two halves of a division, put together again, for any common factor c:
//   (x%a)*c + (x/a)*a*c              =>  x*c
//   (x%a)*c + ((z + x/a)%b)*a*c      =>  ((z*a + x)%(a*b))*c
std::optional<Expr> recombine_pair(const Remainder& lower, const Expr& other) {
  if (other == lower.missing) return lower.x * lower.common;
  const Expr* upper = find_atom(other, ExprKind::Mod);
  if (!upper || !has_term(upper->operands()[0], lower.quotient)) return std::nullopt;
  const Expr z = upper->operands()[0] - lower.quotient, b = upper->operands()[1];
  if (!product_fits(lower.a, b)) return std::nullopt;
  if (without_atom(other, *upper) != lower.a * lower.common) return std::nullopt;
  return mod(z * lower.a + lower.x, lower.a * b) * lower.common;
}

bool is_divided(const Expr& term) {
  return find_atom(term, ExprKind::FloorDiv) || find_atom(term, ExprKind::Mod);
}

// x*c - (x/a)*a*c  =>  (x%a)*c, for x of one term and numbers a, c > 0.
std::optional<Expr> remainder_left(const std::vector<Expr>& terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::span<const Expr> atoms = atoms_of(terms[i]);
    if (atoms.size() != 1 || atoms[0].kind() != ExprKind::FloorDiv) continue;
    const Expr x = atoms[0].operands()[0], a = atoms[0].operands()[1];
    const int64_t taken = coefficient_of(terms[i]);
    if (!a.is_constant() || taken >= 0 || taken % a.constant() != 0) continue;
    const int64_t c = -(taken / a.constant());
    const auto whole = std::find(terms.begin(), terms.end(), x * c);
    if (whole == terms.end()) continue;
    std::vector<Expr> others;
    std::copy_if(terms.begin(), terms.end(), std::back_inserter(others),
                 [&](const Expr& term) { return &term != &terms[i] && &term != &*whole; });
    return sum_of(std::move(others)) + mod(x, a) * c;
  }
  return {};
}

Expr recombine(std::vector<Expr> terms) {
  const auto divided = std::count_if(terms.begin(), terms.end(), is_divided);
  if (divided > 0) {
    if (const std::optional<Expr> left = remainder_left(terms)) return *left;
  }
  if (divided < 2) return sum_of(std::move(terms));
  for (size_t i = 0; i < terms.size(); ++i) {
    const Expr* atom = find_atom(terms[i], ExprKind::Mod);
    if (!atom) continue;
    const Remainder lower = remainder_of(terms[i], *atom);
    for (size_t j = 0; j < terms.size(); ++j) {
      if (i == j || !is_divided(terms[j])) continue;
      const std::optional<Expr> merged = recombine_pair(lower, terms[j]);
      if (!merged) continue;
      terms.erase(terms.begin() + std::max(i, j));
      terms.erase(terms.begin() + std::min(i, j));
      return sum_of(std::move(terms)) + *merged;
    }
  }
  return sum_of(std::move(terms));
}

// lhs + factor * rhs: a merge of two sorted lists of terms.
Expr add_scaled(const Expr& lhs, const Expr& rhs, int64_t factor) {
  if (rhs.is_constant(0)) return lhs;
  if (lhs.is_constant(0)) return scale(rhs, factor);
  std::vector<Expr> result;
  std::span<const Expr> left = summands(lhs), right = summands(rhs);
  result.reserve(left.size() + right.size());
  while (!left.empty() && !right.empty()) {
    const int order = compare_factors(left[0], right[0]);
    const int64_t added = order < 0 ? 0 : checked_multiply(coefficient_of(right[0]), factor);
    if (order < 0) result.push_back(left[0]);
    if (order > 0) result.push_back(with_coefficient(right[0], added));
    const int64_t both = order ? 0 : checked_add(coefficient_of(left[0]), added);
    if (both) result.push_back(with_coefficient(left[0], both));
    if (order <= 0) left = left.subspan(1);
    if (order >= 0) right = right.subspan(1);
  }
  result.insert(result.end(), left.begin(), left.end());
  for (const Expr& term : right) result.push_back(scale(term, factor));
  return recombine(std::move(result));
}

Expr multiply_sums(const Expr& lhs, const Expr& rhs) {
  const std::span<const Expr> left = summands(lhs), right = summands(rhs);
  if (left.size() * right.size() > kMaxTerms) {
    fail("a product of sizes or indices has more than ", kMaxTerms, " terms");
  }
  Expr result = 0;
  for (const Expr& a : left) {
    for (const Expr& b : right) result = result + multiply_terms(a, b);
  }
  return result;
}

}  // namespace

Expr operator+(const Expr& lhs, const Expr& rhs) {
  if (lhs.is_constant() && rhs.is_constant())
    return checked_add(lhs.constant(), rhs.constant());
  return add_scaled(lhs, rhs, 1);
}

Expr operator-(const Expr& lhs, const Expr& rhs) {
  if (rhs.is_constant()) return lhs + checked_multiply(rhs.constant(), -1);
  return add_scaled(lhs, rhs, -1);
}

Expr operator*(const Expr& lhs, const Expr& rhs) {
  if (lhs.is_constant() && rhs.is_constant()) {
    return checked_multiply(lhs.constant(), rhs.constant());
  }
  if (rhs.is_constant()) return scale(lhs, rhs.constant());
  if (lhs.is_constant()) return scale(rhs, lhs.constant());
  return multiply_sums(lhs, rhs);
}

}  // namespace tiny_compile
