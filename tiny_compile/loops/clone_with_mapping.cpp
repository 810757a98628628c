// The value t[i] = exp(load x[i]) wanted at i = k*4 + 1 is the scalar exp(load x[k*4 + 1]).
#include "tiny_compile/loops/clone_with_mapping.h"

#include <algorithm>
#include <utility>

#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

bool uses_indirect(const Scalar& scalar) { return depends_on(scalar.index, indirect(0)); }

Scalar moved(const Scalar& source, const ScalarMapping& how, const std::vector<int>& ids) {
  Scalar scalar = renumbered(
      source, [&](int id) { return ids[id]; }, [&](int step) { return step + how.first_step; });
  if (how.axes.empty() || scalar.index.is_constant()) return scalar;
  const bool was_indirect = uses_indirect(scalar);
  scalar.index = substitute(scalar.index, how.axes);
  if (how.indirect.empty() || was_indirect || !uses_indirect(scalar)) return scalar;
  scalar.operands = how.indirect;
  scalar.limits = how.limits;
  return scalar;
}

bool is_constant(const Scalar& scalar, bool value) {
  return scalar.kind == ScalarKind::Constant && scalar.dtype == DType::boolean &&
         (scalar.value.as_integer() != 0) == value;
}

// The scalar of the target that it comes to where the loops alone decide a condition; or -1.
int settled(const Scalar& scalar, ScalarTable& target) {
  const Kernel& kernel = target.kernel();
  const bool counts = scalar.kind == ScalarKind::Index && scalar.operands.empty();
  if (counts && scalar.index.is_constant())
    return target.constant(Literal::of_integer(scalar.dtype, scalar.index.constant()));
  if (scalar.kind == ScalarKind::Load && scalar.mask >= 0 &&
      is_constant(kernel.scalars[scalar.mask], false))
    return target.constant(scalar.value);
  if (scalar.kind != ScalarKind::Apply) return -1;
  if (const auto condition = comparison(kernel, scalar)) {
    if (!condition->always() && !condition->never()) return -1;
    return target.constant(Literal::of(DType::boolean, condition->always()));
  }
  const auto& ids = scalar.operands;
  const auto is = [&](size_t k, bool value) {
    return is_constant(kernel.scalars[ids[k]], value);
  };
  if (scalar.op == Op::where && (is(0, true) || is(0, false))) return ids[is(0, true) ? 1 : 2];
  if (scalar.op != Op::bitwise_and || scalar.dtype != DType::boolean) return -1;
  if (is(0, true) || is(1, false)) return ids[1];
  return is(1, true) || is(0, false) ? ids[0] : -1;
}

uint64_t axes_of(const Kernel& kernel, const Scalar& scalar) {
  uint64_t axes = 0;
  for (size_t a = 0; a < kernel.axes.size(); a++)
    axes |= uint64_t{depends_on(scalar.index, kernel.axes[a].symbol().symbol())} << a;
  return axes;
}

// Whether a load needs no mask of the reader's: it stays within what the source reads, and its index has no
// axis of the mask's, so that every place which it names is named where the mask holds, too. A number of
// each row is such, under a mask of its elements.
bool is_free(const Scalar& source, const Scalar& load, uint64_t masked, const Kernel& reader) {
  const Interval asked = load.index.bounds(), had = source.index.bounds();
  const uint64_t last = reader.rows > 0 ? uint64_t{1} << (reader.rows - 1) : 0;
  return source.mask < 0 && load.operands.empty() && asked.low >= had.low &&
         asked.high <= had.high && (axes_of(reader, load) & (masked | last)) == 0;
}

}  // namespace

std::vector<int> clone_with_mapping(const Kernel& source, const std::vector<bool>& wanted,
                                    const ScalarMapping& how, ScalarTable& target) {
  std::vector<int> ids(source.scalars.size(), -1);
  const uint64_t masked =
      how.mask < 0 ? 0 : axes_of_scalars(target.kernel())[static_cast<size_t>(how.mask)];
  for (size_t id = 0; id < ids.size(); id++) {
    if (!wanted.empty() && !wanted[id]) continue;
    Scalar scalar = moved(source.scalars[id], how, ids);
    if (scalar.kind == ScalarKind::Load) {
      const int instead = how.replace ? how.replace(scalar) : -1;
      if (instead >= 0) {
        ids[id] = instead;
        continue;
      }
      if (how.mask >= 0 && scalar.mask >= 0)
        scalar.mask = target.apply(Op::bitwise_and, DType::boolean, {how.mask, scalar.mask});
      else if (how.mask >= 0)
        scalar.mask = how.mask;
      scalar.index = simplify_under_mask(target.kernel(), scalar.mask, scalar.index);
      if (how.mask >= 0 && is_free(source.scalars[id], scalar, masked, target.kernel()))
        scalar.mask = -1;
    }
    if (scalar.kind == ScalarKind::Index)
      scalar.index = simplify_under_mask(target.kernel(), how.mask, scalar.index);
    ids[id] = target.add(std::move(scalar));
  }
  return ids;
}

Kernel with_settled_conditions(Kernel kernel) {
  const auto is_settled = [&](const Scalar& scalar) {
    const auto condition = comparison(kernel, scalar);
    return condition ? condition->always() || condition->never()
                     : is_constant(scalar, true) || is_constant(scalar, false);
  };
  if (std::none_of(kernel.scalars.begin(), kernel.scalars.end(), is_settled)) return kernel;
  const std::vector<Scalar> scalars = std::exchange(kernel.scalars, {});
  ScalarTable table(kernel);
  std::vector<int> ids;
  for (const Scalar& given : scalars) {
    Scalar scalar = renumbered(
        given, [&](int id) { return ids[id]; }, [](int step) { return step; });
    if (scalar.mask >= 0 && is_constant(kernel.scalars[scalar.mask], true))
      scalar.mask = -1, scalar.value = Literal{scalar.dtype, 0};
    const int known = settled(scalar, table);
    ids.push_back(known >= 0 ? known : table.add(std::move(scalar)));
  }
  for (Step& step : kernel.steps) {
    for (int* root : step.roots()) *root = *root < 0 ? -1 : ids[*root];
  }
  return normalize(std::move(kernel));
}

Kernel without_steps(Kernel kernel) {
  kernel.scalars.clear();
  kernel.steps.clear();
  return kernel;
}

Kernel without_steps_where(Kernel kernel, const std::function<bool(const Step&)>& condition) {
  std::vector<int> numbers;
  std::vector<Step> kept;
  for (Step& step : kernel.steps) {
    numbers.push_back(static_cast<int>(kept.size()));
    if (!condition(step)) kept.push_back(std::move(step));
  }
  kernel.steps = std::move(kept);
  for (Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Register) scalar.step = numbers[scalar.step];
  }
  return kernel;
}

bool has_registers(const Kernel& kernel, const std::vector<bool>& wanted) {
  for (size_t id = 0; id < wanted.size(); id++) {
    if (wanted[id] && kernel.scalars[id].kind == ScalarKind::Register) return true;
  }
  return false;
}

bool can_move_to_indirect(const Kernel& source, const std::vector<bool>& wanted) {
  for (size_t id = 0; id < wanted.size(); id++) {
    const Scalar& scalar = source.scalars[id];
    if (!wanted[id]) continue;
    if (uses_indirect(scalar) || scalar.kind == ScalarKind::Philox) return false;
    if (scalar.kind == ScalarKind::Load && scalar.mask >= 0) return false;
  }
  return true;
}

}  // namespace tiny_compile
