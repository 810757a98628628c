// Where a condition of the loops chooses between what is made of a load and something else, as a causal
// mask does, the load matters only where it is chosen:
//
//   $8 = where(le(index[j0], index[i1]), mul(load x[i1*1024 + j0], 0.125), -inf)
//   =>
//   for v < 8 { pack2[v] = 0.0 }
//   if j0_v - i1 < 1 { pack2[0] = load x[i1*1024 + j0_v] x8 }
//
// Half of memory's bytes are not read then. Only conditions on a row and an element of it are asked: what
// lies beyond a border is little. Nothing that was read may be told of: an integer that nobody looks at may
// still be divided by.
#include "tiny_compile/tile/wanted.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

// That a scalar is looked at only where the condition has this value.
struct Guard {
  int condition = -1;  // of none: always
  bool value = true;
  bool operator==(const Guard&) const = default;
};

class Guards {
 public:
  explicit Guards(const Kernel& kernel) : of_(kernel.scalars.size()) {
    for (const Step& step : kernel.steps)
      for (const int root : step.roots()) add_user(root, {});
    for (size_t id = of_.size(); id-- > 0;) find_operands(kernel.scalars[id], of(id));
  }

  Guard of(size_t id) const { return of_[id].value_or(Guard{}); }

 private:
  void add_user(int id, const Guard& guard) {
    if (id < 0) return;
    std::optional<Guard>& own = of_[static_cast<size_t>(id)];
    own = !own || *own == guard ? guard : Guard{};
  }

  // Its users are known by now: they have greater numbers.
  void find_operands(const Scalar& scalar, const Guard& own) {
    const bool passes = scalar.kind == ScalarKind::Apply && is_float(scalar.dtype),
               chooses = passes && scalar.op == Op::where;
    for (size_t k = 0; k < scalar.operands.size(); k++) {
      const bool is_chosen = chooses && k > 0;
      add_user(scalar.operands[k], is_chosen ? Guard{scalar.operands[0], k == 1}
                                   : passes  ? own
                                             : Guard{});
    }
    add_user(scalar.mask, {});
  }

  std::vector<std::optional<Guard>> of_;
};

// index < bound, where the comparison has this value.
std::optional<Within> as_less(const Kernel& kernel, const Scalar& s, bool value) {
  const bool is_less = s.op == Op::lt || s.op == Op::le;
  if (s.kind != ScalarKind::Apply || (!is_less && s.op != Op::gt && s.op != Op::ge))
    return std::nullopt;
  const auto lhs = integer_of(kernel, s.operands[0]), rhs = integer_of(kernel, s.operands[1]);
  if (!lhs || !rhs) return std::nullopt;
  const bool counts_equal = (s.op == Op::le || s.op == Op::ge) == value;
  return Within{is_less == value ? *lhs - *rhs : *rhs - *lhs, counts_equal ? 1 : 0};
}

bool goes_over(const Kernel& kernel, const Expr& index, size_t first, size_t end) {
  for (size_t a = first; a < end; a++)
    if (depends_on(index, kernel.axes[a].name)) return true;
  return false;
}

bool goes_over_rows(const Kernel& kernel, const Expr& index) {
  return goes_over(kernel, index, 0, static_cast<size_t>(kernel.rows));
}

bool goes_over_loops(const Kernel& kernel, const Expr& index) {
  return goes_over(kernel, index, static_cast<size_t>(kernel.rows), kernel.axes.size());
}

class Conditions {
 public:
  Conditions(const Kernel& kernel, const VectorAxis& vector)
      : kernel_(kernel), vector_(vector) {}

  void add(int id, bool value) {
    const Scalar& s = kernel_.scalars[id];
    const bool applies = s.kind == ScalarKind::Apply && s.dtype == DType::boolean;
    if (applies && s.op == Op::bitwise_not) return add(s.operands[0], !value);
    if (applies && s.op == (value ? Op::bitwise_and : Op::bitwise_or)) {
      for (int operand : s.operands) add(operand, value);
      return;
    }
    const std::optional<Within> less = as_less(kernel_, s, value);
    if (!less || !goes_over_rows(kernel_, less->index) ||
        !goes_over_loops(kernel_, less->index))
      return;
    if (const std::optional<Expr> least = least_of_vector(less->index))
      found.push_back({*least, less->bound});
  }

  std::vector<Within> found;

 private:
  std::optional<Expr> least_of_vector(const Expr& index) const {
    if (vector_.width == 1) return index;
    const Expr symbol = kernel_.axes[vector_.axis].symbol();
    const int64_t step = coefficient(index, symbol);
    if (depends_on(index - step * symbol, symbol.name())) return std::nullopt;
    return at_start(kernel_, vector_, index) + std::min<int64_t>(0, step * (vector_.width - 1));
  }

  const Kernel& kernel_;
  const VectorAxis& vector_;
};

}  // namespace

std::vector<Within> wanted(const Kernel& kernel, const VectorAxis& vector, int load) {
  const Scalar& scalar = kernel.scalars[load];
  // What is read once a row is read where no element has a name.
  if (!is_plain(scalar) || !is_float(scalar.dtype) || !goes_over_loops(kernel, scalar.index))
    return {};
  const Guard guard = Guards(kernel).of(static_cast<size_t>(load));
  Conditions conditions(kernel, vector);
  if (guard.condition >= 0) conditions.add(guard.condition, guard.value);
  return std::move(conditions.found);
}

}  // namespace tiny_compile
