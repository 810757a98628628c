// How do two kernels become one? The second's axes are written in those of the first, which are cut where they
// are longer; its steps follow, and its loads of what the first stores at the same point become the value.
//
//   rows(i: 12)      { store t[i] = exp(load x[i]) }
//   rows(i: 3, j: 4) { store y[i*4 + j] = add(load t[i*4 + j], load s[i]) }
// =>
//   rows(i: 3, j: 4) { $0 = exp(load x[i*4 + j]) ; store t[i*4 + j] = $0
//                      store y[i*4 + j] = add($0, load s[i]) }
#include "tiny_compile/loops/join.h"

#include <algorithm>
#include <memory>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/clone_with_mapping.h"

namespace tiny_compile {
namespace {

// Cuts an axis of `first` into the pieces of the plan that lie in it: i => i0*1024 + i1.
// Returns the axis of each piece.
std::vector<int> cut_axes(Group& group, const MergePlan& plan) {
  std::vector<int> axis_of(plan.pieces.size());
  std::vector<std::vector<int>> parts(plan.first.size());
  for (size_t p = 0; p < plan.pieces.size(); p++)
    parts[plan.pieces[p].first].push_back(static_cast<int>(p));
  Kernel& kernel = group.kernel;
  Substitution names;
  for (size_t loop = 0; loop < parts.size(); loop++) {
    const int axis = plan.first[loop].axis;
    if (parts[loop].size() == 1) {
      axis_of[parts[loop][0]] = axis;
      continue;
    }
    Expr whole = 0;
    std::vector<int> added;
    for (int piece : parts[loop]) {
      axis_of[piece] = static_cast<int>(kernel.axes.size());
      added.push_back(axis_of[piece]);
      kernel.axes.push_back({str("c", kernel.axes.size()), plan.pieces[piece].extent});
      whole = whole * plan.pieces[piece].extent + kernel.axes.back().symbol();
    }
    names.push_back({kernel.axes[axis].name, whole});
    auto replace_in = [&](std::vector<int>& list) {
      const auto at = std::find(list.begin(), list.end(), axis);
      if (at != list.end()) list.insert(list.erase(at), added.begin(), added.end());
    };
    replace_in(group.rows);
    for (Step& step : kernel.steps) replace_in(step.inner);
  }
  if (names.empty()) return axis_of;
  for (Step& step : kernel.steps) step.index = substitute(step.index, names);
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, names);
  group.table = std::make_unique<ScalarTable>(kernel);
  return axis_of;
}

// The second's axes in terms of the first's, after cutting.
struct Mapping {
  Substitution names;
  std::vector<std::vector<int>> axes;  // of each axis of the second, slowest first
};

// Loops of a step of the first that an unmatched loop of the second may be: one as long, or what
// one as long was cut into; none taken.
std::vector<int> partners(const Group& first, const std::vector<int>& taken,
                          const Expr& extent) {
  std::vector<int> all;
  for (const Step& step : first.kernel.steps) {
    Expr together = 1;
    std::vector<int> free;
    for (int axis : step.inner) {
      if (contains(taken, axis) || first.is_row(axis)) continue;
      if (first.kernel.axes[axis].extent == extent) return {axis};
      together = together * first.kernel.axes[axis].extent;
      free.push_back(axis);
    }
    if (all.empty() && together == extent && step_as_one(first.kernel, free)) all = free;
  }
  return all;
}

Mapping map_axes(Group& first, const Group& second, const MergePlan& plan,
                 const std::vector<int>& axis_of) {
  Mapping mapping;
  mapping.axes.resize(second.kernel.axes.size());
  std::vector<int> taken = axis_of;
  for (size_t p = 0; p < plan.pieces.size(); p++) {
    const int axis = plan.second[plan.pieces[p].second].axis;
    if (axis >= 0) mapping.axes[axis].push_back(axis_of[p]);
  }
  for (int axis : plan.unmatched) {
    const Expr& extent = second.kernel.axes[axis].extent;
    std::vector<int>& shared = mapping.axes[axis] = partners(first, taken, extent);
    if (shared.empty()) {
      shared = {static_cast<int>(first.kernel.axes.size())};
      first.kernel.axes.push_back({str("n", shared[0]), extent});
    }
    taken.insert(taken.end(), shared.begin(), shared.end());
  }
  for (size_t a = 0; a < mapping.axes.size(); a++) {
    Expr value = 0;
    for (int axis : mapping.axes[a])
      value = value * first.kernel.axes[axis].extent + first.kernel.axes[axis].symbol();
    mapping.names.push_back({second.kernel.axes[a].name, value});
  }
  return mapping;
}

// Rows of the first that are not rows of the merged kernel become inner loops of its steps.
void narrow_rows(Group& group, const MergePlan& plan, const std::vector<int>& axis_of) {
  std::vector<int> rows, moved;
  for (int row : group.rows) {
    const auto at = std::find(axis_of.begin(), axis_of.end(), row);
    const bool stays = at != axis_of.end() && plan.row_piece[at - axis_of.begin()];
    (stays ? rows : moved).push_back(row);
  }
  group.rows = rows;
  if (moved.empty()) return;
  for (Step& step : group.kernel.steps)
    step.inner.insert(step.inner.begin(), moved.begin(), moved.end());
}

// A load of what the first stores, as the stored value: here, or where the second's data says.
int stored_value(Group& first, const MergePlan& plan, const std::vector<int>& axis_of,
                 const Scalar& load) {
  const int step = first.store_to(load.buffer);
  if (step < 0) return -1;
  const Step store = first.kernel.steps[step];
  int value = store.value;
  if (!load.operands.empty()) {
    ScalarMapping there;
    const Axis& axis = first.kernel.axes[axis_of[plan.indirect]];
    there.axes = {{axis.name, Expr::index(indirect(0), axis.extent)}};
    there.mask = load.mask;
    there.indirect = load.operands;
    there.limits = load.limits;
    const Kernel source = first.kernel;
    value =
        clone_with_mapping(source, reachable(source, store), there, *first.table)[store.value];
  }
  if (load.mask < 0) return value;
  return first.table->apply(Op::where, load.dtype,
                            {load.mask, value, first.table->constant(load.value)});
}

// Whether every load of the second of a buffer that the first writes is at the point where the
// first writes it (or at data's choice along the one loop that allows it).
bool reads_line_up(const Group& first, const Group& second, const Mapping& mapping,
                   const MergePlan& plan, const std::vector<int>& axis_of) {
  for (const Scalar& load : second.kernel.scalars) {
    if (load.kind != ScalarKind::Load) continue;
    const int step = first.store_to(load.buffer);
    if (step < 0) continue;
    const Step& store = first.kernel.steps[step];
    Expr written = store.index;
    if (!load.operands.empty()) {
      if (plan.indirect < 0 || load.operands.size() != 1) return false;
      const Axis& axis = first.kernel.axes[axis_of[plan.indirect]];
      written = substitute(written, {{axis.name, Expr::index(indirect(0), axis.extent)}});
      if (!can_move_to_indirect(first.kernel, reachable(first.kernel, store))) return false;
    }
    if (substitute(load.index, mapping.names) != written) return false;
  }
  return true;
}

}  // namespace

std::string join_groups(Group& first, const Group& second, const MergePlan& plan) {
  const std::vector<int> axis_of = cut_axes(first, plan);
  const Mapping mapping = map_axes(first, second, plan, axis_of);
  if (!reads_line_up(first, second, mapping, plan, axis_of))
    return "it reads other places than the ones written at the same point";
  narrow_rows(first, plan, axis_of);
  ScalarMapping how;
  how.axes = mapping.names;
  how.first_step = static_cast<int>(first.kernel.steps.size());
  how.replace = [&](const Scalar& load) { return stored_value(first, plan, axis_of, load); };
  const std::vector<int> ids = clone_with_mapping(second.kernel, {}, how, *first.table);
  for (Step step : second.kernel.steps) {
    std::vector<int> inner;
    auto add = [&](int axis) {
      for (int mapped : mapping.axes[axis]) {
        if (!first.is_row(mapped)) inner.push_back(mapped);
      }
    };
    for (int row : second.rows) add(row);
    for (int axis : step.inner) add(axis);
    step.inner = inner;
    step.index = substitute(step.index, mapping.names);
    for (int* id : step.roots()) *id = *id < 0 ? -1 : ids[*id];
    first.add_step(std::move(step));
  }
  first.kernel.again = std::max(first.kernel.again, second.kernel.again);
  first.repeated += second.repeated;
  return "";
}

}  // namespace tiny_compile
