// What does a mask say about the index under it?
//
//   load x[(i0 + i1/64)*64 + i1%64] if lt(i1, 64)   =>  load x[i0*64 + i1] if lt(i1, 64)
//
// Where the mask is true an axis has narrower bounds than its loop. The index is built anew from
// a symbol with those, which lets divisions and remainders go, and then gets its axis back. That is for
// what nobody asks for where the mask is false.
#include "tiny_compile/loops/simplify_under_mask.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr size_t kMostConditions =
    64;  // of a conjunction; to know fewer bounds is right as well

struct Range {
  Expr symbol;
  Interval bounds;
};

// A number of the user's, whose difference from an index might not be one of 64 bits.
bool is_huge(const Expr& e) {
  return e.is_constant() && (e.constant() <= -kUnbounded / 2 || e.constant() >= kUnbounded / 2);
}

// Of i1 - 3 < 64: i1 is in [0, 66].
std::optional<Range> range_of(const Kernel& kernel, const Scalar& scalar) {
  const auto condition = comparison(kernel, scalar);
  if (!condition || condition->difference.is_constant()) return {};
  const bool less = condition->op == Op::lt;
  if (!less && condition->op != Op::ge) return {};
  const Expr symbol = terms(condition->difference)[0].factor,
             offset = condition->difference - symbol;
  if (symbol.kind() != ExprKind::Symbol || !offset.is_constant()) return {};
  Interval bounds = symbol.bounds();
  if (less) bounds.high = std::min(bounds.high, -offset.constant() - 1);
  if (!less) bounds.low = std::max(bounds.low, -offset.constant());
  return Range{symbol, bounds};
}

std::vector<Range> ranges_under(const Kernel& kernel, int mask) {
  std::vector<Range> ranges;
  for (int id : conjuncts(kernel, mask)) {
    const auto range = range_of(kernel, kernel.scalars[id]);
    if (!range) continue;
    const auto known = std::find_if(ranges.begin(), ranges.end(), [&](const Range& other) {
      return other.symbol == range->symbol;
    });
    if (known == ranges.end()) {
      ranges.push_back(*range);
      continue;
    }
    known->bounds.low = std::max(known->bounds.low, range->bounds.low);
    known->bounds.high = std::min(known->bounds.high, range->bounds.high);
  }
  return ranges;
}

}  // namespace

std::vector<int> conjuncts(const Kernel& kernel, int mask) {
  std::vector<int> found = {mask};
  for (size_t k = 0; k < found.size() && found.size() < kMostConditions; k++) {
    const Scalar& scalar = kernel.scalars[found[k]];
    if (scalar.kind == ScalarKind::Apply && scalar.op == Op::bitwise_and)
      found.insert(found.end(), scalar.operands.begin(), scalar.operands.end());
  }
  return found;
}

std::optional<Expr> integer_of(const Kernel& kernel, int id) {
  const Scalar& scalar = kernel.scalars[id];
  if (scalar.kind == ScalarKind::Constant && scalar.dtype == DType::i64)
    return scalar.value.as_integer();
  const bool known =
      scalar.kind == ScalarKind::Index && scalar.dtype == DType::i64 && scalar.operands.empty();
  return known ? std::optional(scalar.index) : std::nullopt;
}

bool Comparison::never() const {
  const Interval d = difference.bounds();
  switch (op) {
    case Op::lt: return d.low >= 0;
    case Op::ge: return d.high < 0;
    case Op::eq: return d.low > 0 || d.high < 0;
    default: return difference.is_constant(0);
  }
}

bool Comparison::always() const {
  const Op otherwise = op == Op::lt   ? Op::ge
                       : op == Op::ge ? Op::lt
                       : op == Op::eq ? Op::ne
                                      : Op::eq;
  return Comparison{difference, otherwise}.never();
}

std::optional<Comparison> comparison(const Kernel& kernel, const Scalar& scalar) {
  const Op op = scalar.op;
  if (scalar.kind != ScalarKind::Apply ||
      (op != Op::lt && op != Op::ge && op != Op::eq && op != Op::ne))
    return std::nullopt;
  const auto lhs = integer_of(kernel, scalar.operands[0]),
             rhs = integer_of(kernel, scalar.operands[1]);
  if (!lhs || !rhs || is_huge(*lhs) || is_huge(*rhs)) return std::nullopt;
  return Comparison{*lhs - *rhs, op};
}

int64_t points_under(const Kernel& kernel, int mask, const std::vector<int>& axes) {
  const std::vector<Range> ranges =
      mask < 0 ? std::vector<Range>() : ranges_under(kernel, mask);
  int64_t points = 1;
  for (const int axis : axes) {
    const Expr symbol = kernel.axes[axis].symbol();
    const auto range = std::find_if(ranges.begin(), ranges.end(),
                                    [&](const Range& other) { return other.symbol == symbol; });
    const Interval bounds = range == ranges.end() ? symbol.bounds() : range->bounds;
    const int64_t count = std::max<int64_t>(bounds.high - bounds.low + 1, 0);
    points = clamp_to_bounds(static_cast<Wide>(points) * count);
  }
  return points;
}

Expr simplify_under_mask(const Kernel& kernel, int mask, const Expr& index) {
  if (mask < 0 || index.is_constant()) return index;
  Substitution inside, outside;
  for (const auto& [symbol, bounds] : ranges_under(kernel, mask)) {
    if (bounds.low > bounds.high) return index;  // the mask is never true
    inside.push_back({symbol.symbol(), Expr::symbol(symbol.symbol(), bounds.low, bounds.high)});
    outside.push_back({symbol.symbol(), symbol});
  }
  if (inside.empty()) return index;
  const Expr shorter = substitute(substitute(index, inside), outside);
  return shorter.size() <= index.size() ? shorter : index;
}

}  // namespace tiny_compile
