// Is every element of a buffer written, and by one point of the loops alone?
//
//   store t[i0*4 + j0] for i0 < 8, j0 < 4, of 32 elements    strides 1 (j0: 4), 4 (i0: 8): yes
//   store t[i0*5 + j0] for i0 < 8, j0 < 4, of 39             nobody writes t[4]: no
//   store t[i0%8*4 + i0/8] for i0 < 32                       i0 = 8*d1 + d0: strides 1 (d1: 4),
//                                                            4 (d0: 8): yes
//
//   store t[(i0*4 + j0)/6 + (i0*4 + j0)%6*2] for i0 < 3,    i0*4 + j0 is one axis of 12
//     j0 < 4, of 12
//
// An axis that an index divides is taken for its digits, one between any two divisors that
// divide each other. What is then linear in all digits covers its range where each stride is
// the product of the extents of those below it; or, by counting, where it stays in the range,
// meets no value twice (each stride is larger than all that those below it can add up to) and
// has as many points as the range has values.
#include "tiny_compile/loops/coverage.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace tiny_compile {
namespace {

struct Rate {  // of an axis in an expression: it grows by up / down for each turn
  Wide up = 0, down = 1;
};

Rate rate_of(const Expr& expr, const std::string& axis) {
  for (const Term& term : terms(expr)) {
    const Expr& factor = term.factor;
    if (factor.is_constant() || !depends_on(factor, axis)) continue;
    const Wide c = std::abs(term.coefficient);
    if (factor.kind() == ExprKind::Symbol) return {c, 1};
    const bool divides = factor.kind() == ExprKind::FloorDiv;
    if (!divides && factor.kind() != ExprKind::Mod) return {};
    const Expr &inner = factor.operands()[0], &divisor = factor.operands()[1];
    if (!divisor.is_constant()) return {};
    const Rate rate = rate_of(inner, axis);
    const Wide by = divides ? Wide{divisor.constant()} : Wide{1};
    if (rate.up > kUnbounded / (c + 1) || rate.down > kUnbounded / by) return {};
    return {rate.up * c, rate.down * by};
  }
  return {};
}

// Where a quotient or a remainder in the expression cuts the axis: of i0/8%4, at 8 and 32.
void add_cuts(const Expr& expr, const std::string& axis, std::vector<int64_t>& cuts) {
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol || !depends_on(expr, axis)) return;
  const std::vector<Expr>& operands = expr.operands();
  const bool divides = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod;
  if (divides && operands[1].is_constant()) {
    const Rate rate = rate_of(operands[0], axis);
    const Wide cut = rate.up > 0 ? operands[1].constant() * rate.down : 0;
    if (cut > 0 && cut % rate.up == 0 && cut / rate.up < kUnbounded)
      cuts.push_back(static_cast<int64_t>(cut / rate.up));
  }
  for (const Expr& operand : operands) add_cuts(operand, axis, cuts);
}

// The axis's digits, lowest first, and their weights; itself where it is not cut.
struct Digits {
  std::vector<Axis> axes;
  Expr value = 0;  // of the axis
};

std::optional<Digits> digits_of(const Axis& axis, const Expr& index) {
  std::vector<int64_t> cuts = {1};
  add_cuts(index, axis.name, cuts);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  if (axis.extent.is_constant())
    while (cuts.size() > 1 && cuts.back() >= axis.extent.constant()) cuts.pop_back();
  Digits digits;
  for (size_t k = 0; k < cuts.size(); k++) {
    const bool last = k + 1 == cuts.size();
    if (!last && cuts[k + 1] % cuts[k] != 0) return std::nullopt;
    const Axis digit{str(axis.name, "_", k),
                     last ? ceil_div(axis.extent, cuts[k]) : Expr(cuts[k + 1] / cuts[k])};
    digits.axes.push_back(digit);
    digits.value = digits.value + digit.symbol() * cuts[k];
  }
  return digits;
}

struct Linear {
  Expr base;
  std::vector<Expr> strides;  // of each axis
};

std::optional<Linear> linear_in(const Expr& index, const std::vector<Axis>& axes) {
  Substitution nowhere;
  for (const Axis& axis : axes) nowhere.push_back({axis.name, 0});
  Linear linear{substitute(index, nowhere), {}};
  Expr sum = linear.base;
  for (size_t k = 0; k < axes.size(); k++) {
    nowhere[k].second = 1;
    linear.strides.push_back(substitute(index, nowhere) - linear.base);
    nowhere[k].second = 0;
    sum = sum + linear.strides[k] * axes[k].symbol();
  }
  return sum == index ? std::optional(linear) : std::nullopt;
}

// 1, then the extent of what has stride 1, then that times the next one's, up to the size.
bool is_row_major(const Linear& linear, const std::vector<Axis>& axes, const Expr& size) {
  if (!linear.base.is_constant(0)) return false;
  std::vector<bool> used(axes.size());
  Expr stride = 1;
  for (size_t turn = 0; turn < axes.size(); turn++) {
    for (size_t k = 0; k < axes.size(); k++) {
      if (used[k] || linear.strides[k] != stride) continue;
      used[k] = true;
      stride = stride * axes[k].extent;
      break;
    }
  }
  return stride == size && std::find(used.begin(), used.end(), false) == used.end();
}

bool meets_no_value_twice(const Linear& linear, const std::vector<Axis>& axes) {
  std::vector<std::pair<int64_t, int64_t>> strides;  // and extents less 1
  for (size_t k = 0; k < axes.size(); k++) {
    if (!linear.strides[k].is_constant() || !axes[k].extent.is_constant()) return false;
    strides.push_back({std::abs(linear.strides[k].constant()), axes[k].extent.constant() - 1});
  }
  std::sort(strides.begin(), strides.end());
  Wide reach = 0;
  for (const auto& [stride, most] : strides) {
    if (stride <= reach) return false;
    reach += Wide{stride} * most;
  }
  return true;
}

// Bounds treat each part of a sum alone; what is linear in the digits is known exactly.
bool stays_within(const Expr& index, const Linear& linear, const std::vector<Axis>& digits,
                  int64_t size) {
  const Interval bounds = index.bounds();
  if (bounds.low >= 0 && bounds.high < size) return true;
  if (!linear.base.is_constant()) return false;
  Wide low = linear.base.constant(), high = low;
  for (size_t k = 0; k < digits.size(); k++) {
    const Wide reach = Wide{linear.strides[k].constant()} * (digits[k].extent.constant() - 1);
    (reach < 0 ? low : high) += reach;
  }
  return low >= 0 && high < size;
}

bool covers_by_digits(const Expr& index, const std::vector<Axis>& axes, const Expr& size) {
  std::vector<Axis> digits;
  Substitution by_digits;
  Expr points = 1;
  for (const Axis& axis : axes) {
    points = points * axis.extent;
    const std::optional<Digits> found = digits_of(axis, index);
    if (!found) return false;
    by_digits.push_back({axis.name, found->value});
    for (const Axis& digit : found->axes) {
      if (!digit.extent.is_constant(1)) digits.push_back(digit);
    }
  }
  const Expr in_digits = substitute(index, by_digits);
  Substitution ones;  // a digit of extent 1 is 0
  for (const Symbol& symbol : symbols(in_digits)) {
    const std::string& name = symbol.name;
    const auto is_it = [&](const Axis& digit) { return digit.name == name; };
    const bool varies = std::any_of(digits.begin(), digits.end(), is_it);
    const bool digit = std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
      return name.starts_with(axis.name + "_");
    });
    if (digit && !varies) ones.push_back({name, 0});
  }
  const std::optional<Linear> linear = linear_in(substitute(in_digits, ones), digits);
  if (!linear) return false;
  return is_row_major(*linear, digits, size) ||
         (points == size && size.is_constant() && meets_no_value_twice(*linear, digits) &&
          stays_within(index, *linear, digits, size.constant()));
}

// Whether a quotient or a remainder in it is of both.
bool divides_both(const Expr& expr, const std::string& a, const std::string& b) {
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return false;
  if (!depends_on(expr, a) || !depends_on(expr, b)) return false;
  if (expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod) return true;
  const std::vector<Expr>& operands = expr.operands();
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Expr& operand) { return divides_both(operand, a, b); });
}

// With one axis for outer * extent + inner, which takes each of its values once. Where the index knows
// the two by that alone, it is the simpler for it.
bool covers_joined(const Expr& index, std::vector<Axis> axes, size_t outer, size_t inner,
                   const Expr& size) {
  const Expr turns = axes[inner].extent;
  const Axis both{"both" + axes[outer].name, axes[outer].extent * turns};
  const Expr joined = substitute(index, {{axes[outer].name, floor_div(both.symbol(), turns)},
                                         {axes[inner].name, mod(both.symbol(), turns)}});
  axes[outer] = both;
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(inner));
  return covers(joined, axes, size);
}

}  // namespace

bool covers(const Expr& index, const std::vector<Axis>& axes, const Expr& size) {
  if (covers_by_digits(index, axes, size)) return true;
  for (size_t outer = 0; outer < axes.size(); outer++) {
    for (size_t inner = 0; inner < axes.size(); inner++) {
      if (inner == outer || !axes[inner].extent.is_constant() ||
          !divides_both(index, axes[outer].name, axes[inner].name))
        continue;
      if (covers_joined(index, axes, outer, inner, size)) return true;
    }
  }
  return false;
}

Rows rows_of(const Buffer& buffer) {
  const Expr elements = product(buffer.type.shape);
  if (buffer.size == elements) return {elements, elements, 1};
  const bool has_rows = !buffer.type.shape.empty() && buffer.size.is_constant() &&
                        elements.is_constant() && elements.constant() > 0;
  if (!has_rows) return {1, 1, 0};
  const Expr& row = buffer.type.shape.back();
  const int64_t count = elements.constant() / row.constant(),
                stride = buffer.size.constant() / count;
  const bool padded = stride * count == buffer.size.constant() && stride > row.constant();
  return {row, stride, padded ? count : 0};
}

Expr number_in_shape(const Rows& rows, const Expr& index) {
  if (rows.count.is_constant(1) && rows.row == rows.stride) return index;
  return floor_div(index, rows.stride) * rows.row + mod(index, rows.stride);
}

bool is_own(const Rows& rows, const Expr& index) {
  if (rows.row == rows.stride) return true;
  return mod(index, rows.stride).bounds().high < rows.row.bounds().low;
}

}  // namespace tiny_compile
