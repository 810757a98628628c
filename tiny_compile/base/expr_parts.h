// Inside the simplifier (the expr_*.cpp files alone): the parts of a canonical
// Expr, their order.
//
//   sum  = term + ... + constant     two or more terms, sorted, each product of atoms once
//   term = constant | product | Mul(product, coefficient)
//   product = atom | Mul(atom, ...)  sorted
//   atom = Symbol, FloorDiv, Mod, Min, Max; their operands are canonical sums
#pragma once

#include <span>

#include "tiny_compile/base/expr.h"

namespace tiny_compile {

// As it is: the caller has simplified. Throws beyond kMaxDepth and kMaxSize.
Expr make_node(ExprKind kind, std::vector<Expr> operands);

namespace parts {

inline constexpr int kMaxDepth = 200;         // keeps each recursion within any stack
inline constexpr int64_t kMaxSize = 1 << 20;  // and short: nodes, counted as often as printed

// Views into their argument.                                of 6*i*j + i + 5
std::span<const Expr> summands(const Expr& expr);  // 6*i*j, i, 5
std::span<const Expr> atoms_of(const Expr& term);  // of 6*i*j: i, j; of a constant: none
int64_t coefficient_of(const Expr& term);          // of 6*i*j: 6; of i: 1; of 5: 5

Expr with_coefficient(const Expr& term, int64_t coefficient);  // 6*i*j, 4 => 4*i*j; not 0
Expr without_atom(const Expr& term, const Expr& atom);         // 6*i*j, i => 6*j
Expr sum_of(std::vector<Expr> terms);                          // of canonical, sorted terms

// Negative, zero or positive; by name and structure, never by address. A prefix comes last,
// hence i*n before i before 1.
int compare(const Expr& lhs, const Expr& rhs);
int compare_factors(const Expr& lhs, const Expr& rhs);  // of terms, coefficients apart
inline bool comes_before(const Expr& lhs, const Expr& rhs) { return compare(lhs, rhs) < 0; }

// Whether lhs + margin <= rhs follows from the bounds. What both share cancels, and an index
// is less than its symbolic extent: i*n + j < m*n for i in [0, m), j in [0, n).
bool is_at_most(const Expr& lhs, const Expr& rhs, int margin = 0);

}  // namespace parts
}  // namespace tiny_compile
