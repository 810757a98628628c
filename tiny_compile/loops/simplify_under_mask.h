// Indices of loads under a mask.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// An index with the value of `index` wherever the scalar `mask` is true (-1: always), and perhaps
// another where it is not; never longer, and shorter if what the mask says of the axes makes it so.
Expr simplify_under_mask(const Kernel& kernel, int mask, const Expr& index);

// Of the points that these axes have, at most how many have a true mask (-1: all).
int64_t points_under(const Kernel& kernel, int mask, const std::vector<int>& axes);

// Scalars that are all true where `mask` is: of and(and(a, b), c), also a, b and c.
std::vector<int> conjuncts(const Kernel& kernel, int mask);

// An i64 that the loops alone choose, if the scalar is one: $3 = index i0 + 3, a constant.
std::optional<Expr> integer_of(const Kernel& kernel, int scalar);

// lhs < rhs, lhs >= rhs, lhs == rhs or lhs != rhs, and what the loops say of it.
struct Comparison {
  Expr difference;  // lhs - rhs
  Op op = Op::lt;
  bool never() const;
  bool always() const;
};

// If the scalar is one, of two integers that the loops alone choose.
std::optional<Comparison> comparison(const Kernel& kernel, const Scalar& scalar);

}  // namespace tiny_compile
