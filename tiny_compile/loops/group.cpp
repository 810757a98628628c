// What is a kernel while it grows? Its axes stand in any order, and one that was cut into pieces
// is still among them, though nothing loops over it; finish puts in order what is left:
//
//   axes i: 8192, j: 768, c2: 8, c3: 1024; rows c2, c3; a step's loop j   (i = c2*1024 + c3)
// =>
//   rows(i0: 8, i1: 1024) { ... (j0: 768) }
//
// How many steps of each kind there are, and which step stores a buffer, is noted when a step
// comes: whoever merges asks that often.
#include "tiny_compile/loops/group.h"

namespace tiny_compile {

Group::Group(Kernel start) : kernel(std::move(start)), rows(row_axes(kernel)) {
  table = std::make_unique<ScalarTable>(kernel);
  for (size_t s = 0; s < kernel.steps.size(); s++) note(kernel.steps[s], static_cast<int>(s));
}

void Group::note(const Step& step, int number) {
  counts_[static_cast<size_t>(step.kind)]++;
  if (step.kind == StepKind::Store) stores_.insert({step.buffer, number});
  const bool in_rows = step.kind == StepKind::Scan || step.kind == StepKind::Sort ||
                       step.kind == StepKind::Scatter;
  if (in_rows) stores_[step.buffer] = -1;
}

void Group::add_step(Step step) {
  note(step, static_cast<int>(kernel.steps.size()));
  kernel.steps.push_back(std::move(step));
}

bool Group::is_row(int axis) const { return contains(rows, axis); }

bool Group::sequential() const {
  return static_cast<size_t>(count(StepKind::Store)) < kernel.steps.size();
}

int Group::store_to(int buffer) const {
  const auto at = stores_.find(buffer);
  return at == stores_.end() ? -1 : at->second;
}

std::vector<int> all_axes(const Group& group) {
  std::vector<int> axes = group.rows;
  for (const Step& step : group.kernel.steps) {
    for (int axis : step.inner) {
      if (!contains(axes, axis)) axes.push_back(axis);
    }
  }
  return axes;
}

Kernel Group::finish() const {
  Kernel result = kernel;
  std::vector<int> order = all_axes(*this), place(kernel.axes.size());
  result.axes.clear();
  for (size_t a = 0; a < order.size(); a++) {
    place[order[a]] = static_cast<int>(a);
    result.axes.push_back(kernel.axes[order[a]]);
  }
  result.rows = static_cast<int>(rows.size());
  for (Step& step : result.steps) {
    for (int& axis : step.inner) axis = place[axis];
  }
  return normalize(std::move(result));
}

int64_t points(const Group& group) {
  int64_t count = 1;
  for (const Axis& axis : group.kernel.axes) count *= axis.extent.bounds().high;
  return count;
}

const Scalar* widest_load(const Group& group,
                          const std::function<bool(const Scalar&)>& counts) {
  const Scalar* best = nullptr;
  size_t most = 0;
  for (const Scalar& scalar : group.kernel.scalars) {
    if (scalar.kind != ScalarKind::Load || !counts(scalar)) continue;
    const size_t loops = 2 * symbols(scalar.index).size() + (scalar.operands.empty() ? 1 : 0);
    if (!best || loops > most) best = &scalar, most = loops;
  }
  return best;
}

}  // namespace tiny_compile
