// Question: what is a canonical expression made of, and which of two comes first?
//
//   6*i*j + i + 5  =>  terms 6*i*j, i, 5; of 6*i*j the atoms are i, j, the coefficient 6
//
// Invariant: the order depends on names and structure alone, so printouts are reproducible.
#include "tiny_compile/base/expr_parts.h"

#include <algorithm>
#include <compare>
#include <optional>

namespace tiny_compile::parts {

namespace {

bool has_coefficient(const Expr& term) {
  return term.kind() == ExprKind::Mul && term.operands().back().is_constant();
}

int sign(std::strong_ordering order) { return std::is_gt(order) - std::is_lt(order); }

// Lexicographic, but a prefix comes last: i*n, i, 1.
template <typename Compare>
int compare_lists(std::span<const Expr> lhs, std::span<const Expr> rhs, Compare compare_items) {
  for (size_t i = 0; i < std::min(lhs.size(), rhs.size()); ++i) {
    if (const int order = compare_items(lhs[i], rhs[i])) return order;
  }
  return sign(rhs.size() <=> lhs.size());
}

int compare_atoms(const Expr& lhs, const Expr& rhs) {
  if (lhs.node() == rhs.node()) return 0;
  if (lhs.kind() != rhs.kind()) return sign(lhs.kind() <=> rhs.kind());
  if (lhs.kind() != ExprKind::Symbol) {
    return compare_lists(lhs.operands(), rhs.operands(), compare);
  }
  const Symbol &left = lhs.symbol(), &right = rhs.symbol();
  if (const int order = left.name.compare(right.name)) return order;
  if (left.kind != right.kind) return sign(left.kind <=> right.kind);
  const Interval a = lhs.bounds(), b = rhs.bounds();
  if (a.low != b.low) return sign(a.low <=> b.low);
  if (a.high != b.high) return sign(a.high <=> b.high);
  return compare_lists(lhs.operands(), rhs.operands(), compare);
}

int compare_terms(const Expr& lhs, const Expr& rhs) {
  if (const int order = compare_factors(lhs, rhs)) return order;
  return sign(coefficient_of(lhs) <=> coefficient_of(rhs));
}

}  // namespace

std::span<const Expr> summands(const Expr& expr) {
  if (expr.kind() == ExprKind::Add) return expr.operands();
  return {&expr, 1};
}

int64_t coefficient_of(const Expr& term) {
  if (term.is_constant()) return term.constant();
  return has_coefficient(term) ? term.operands().back().constant() : 1;
}

std::span<const Expr> atoms_of(const Expr& term) {
  if (term.is_constant()) return {};
  if (has_coefficient(term)) return atoms_of(term.operands()[0]);
  if (term.kind() == ExprKind::Mul) return term.operands();
  return {&term, 1};
}

Expr with_coefficient(const Expr& term, int64_t coefficient) {
  if (term.is_constant()) return coefficient;
  if (coefficient == coefficient_of(term)) return term;
  const Expr& factor = has_coefficient(term) ? term.operands()[0] : term;
  if (coefficient == 1) return factor;
  return make_node(ExprKind::Mul, {factor, coefficient});
}

Expr without_atom(const Expr& term, const Expr& atom) {
  Expr result = coefficient_of(term);
  bool skipped = false;
  for (const Expr& other : atoms_of(term)) {
    const bool is_it = !skipped && other.node() == atom.node();
    if (is_it) skipped = true;
    if (!is_it) result = result * other;
  }
  return result;
}

Expr sum_of(std::vector<Expr> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  return make_node(ExprKind::Add, std::move(terms));
}

int compare_factors(const Expr& lhs, const Expr& rhs) {
  return compare_lists(atoms_of(lhs), atoms_of(rhs), compare_atoms);
}

int compare(const Expr& lhs, const Expr& rhs) {
  return compare_lists(summands(lhs), summands(rhs), compare_terms);
}

namespace {

// Bounds of lhs - rhs, with what they share cancelled.
Interval difference_bounds(const Expr& lhs, const Expr& rhs) {
  Interval result;
  std::span<const Expr> left = summands(lhs), right = summands(rhs);
  while (!left.empty() || !right.empty()) {
    const int order = left.empty()    ? 1
                      : right.empty() ? -1
                                      : compare_factors(left[0], right[0]);
    Wide coefficient = 0;
    Interval factor{1, 1};
    for (const Expr& atom : atoms_of(order <= 0 ? left[0] : right[0])) {
      factor = product_bounds(factor, atom.bounds());
    }
    if (order <= 0) coefficient += coefficient_of(left[0]), left = left.subspan(1);
    if (order >= 0) coefficient -= coefficient_of(right[0]), right = right.subspan(1);
    const int64_t scale = clamp_to_bounds(coefficient);
    if (scale != coefficient) return {-kUnbounded, kUnbounded};
    result = sum_bounds(result, product_bounds(factor, {scale, scale}));
  }
  return result;
}

// At most this for an index or a remainder: extent - 1, divisor - 1; else the atom.
Expr largest_of(const Expr& atom) {
  if (atom.kind() == ExprKind::Symbol && !atom.operands().empty())
    return atom.operands()[0] - 1;
  if (atom.kind() == ExprKind::Mod) return atom.operands()[1] - 1;
  return atom;
}

// 6*(x/3) => 2*x, which is no less; any other term => nothing.
std::optional<Expr> undivided(const Expr& term) {
  const std::span<const Expr> atoms = atoms_of(term);
  if (atoms.size() != 1 || atoms[0].kind() != ExprKind::FloorDiv) return {};
  const Expr& divisor = atoms[0].operands()[1];
  const int64_t coefficient = coefficient_of(term);
  if (!divisor.is_constant() || coefficient <= 0 || coefficient % divisor.constant()) return {};
  return atoms[0].operands()[0] * (coefficient / divisor.constant());
}

// An upper bound of the sum that names the extents: i*n + j => (m - 1)*n + n - 1.
Expr largest(const Expr& sum) {
  Expr result = 0;
  for (const Expr& term : summands(sum)) {
    if (const std::optional<Expr> all = undivided(term)) {
      result = result + *all;
      continue;
    }
    const std::span<const Expr> atoms = atoms_of(term);
    const auto is_negative = [](const Expr& atom) { return atom.bounds().low < 0; };
    const bool rises =
        coefficient_of(term) > 0 && std::none_of(atoms.begin(), atoms.end(), is_negative);
    Expr most = coefficient_of(term);
    for (const Expr& atom : atoms) most = most * (rises ? largest_of(atom) : atom);
    result = result + most;
  }
  return result;
}

}  // namespace

bool is_at_most(const Expr& lhs, const Expr& rhs, int margin) {
  const int64_t most = lhs.bounds().high, least = rhs.bounds().low;
  if (most < kUnbounded && least > -kUnbounded && most <= least - margin) return true;
  if (difference_bounds(rhs, lhs).low >= margin) return true;
  return !lhs.is_constant() && !rhs.is_constant() &&
         difference_bounds(rhs, largest(lhs)).low >= margin;
}

}  // namespace tiny_compile::parts
