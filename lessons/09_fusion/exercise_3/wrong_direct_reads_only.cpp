// fails: a kernel that waits by way of another stays apart
#include "exercise.h"

namespace exercise {
namespace {

bool same_rows(const Kernel& first, const Kernel& second) {
  if (first.rows != second.rows) return false;
  for (int row = 0; row < first.rows; row++) {
    if (first.axes[row].extent != second.axes[row].extent) return false;
  }
  return true;
}

bool simple(const Kernel& kernel) {
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Store && step.kind != StepKind::Reduce) return false;
  }
  return true;
}

bool waits_for(const Program& program, int later, int earlier) {
  return reads_from(program, program.kernels[later], program.kernels[earlier]);
}

bool may_share(const Program& program, int first, int second) {
  const Kernel &a = program.kernels[first], &b = program.kernels[second];
  return same_rows(a, b) && simple(a) && simple(b) &&
         a.steps.size() + b.steps.size() <= kMostSteps && !waits_for(program, second, first);
}

// Both kernels as one; they have the same rows.
Kernel side_by_side(const Kernel& first, const Kernel& second) {
  Kernel both = first;
  both.name = both_names(first.name, second.name);
  both.where.insert(both.where.end(), second.where.begin(), second.where.end());
  ScalarMapping how;  // rows are the first's, inner loops are new
  std::vector<int> axis_of;
  for (size_t a = 0; a < second.axes.size(); a++) {
    const bool row = static_cast<int>(a) < second.rows;
    axis_of.push_back(static_cast<int>(row ? a : both.axes.size()));
    if (!row) both.axes.push_back({str("second", a), second.axes[a].extent});
    how.axes.push_back({second.axes[a].name, both.axes[axis_of[a]].symbol()});
  }
  how.first_step = static_cast<int>(first.steps.size());
  ScalarTable table(both);
  const std::vector<int> ids = clone_with_mapping(second, {}, how, table);
  for (Step step : second.steps) {
    for (int& axis : step.inner) axis = axis_of[axis];
    step.index = substitute(step.index, how.axes);
    step.value = ids[step.value];
    both.steps.push_back(std::move(step));
  }
  return normalize(std::move(both));
}

}  // namespace

Program launch_together(const Program& program) {
  for (int second = 1; second < static_cast<int>(program.kernels.size()); second++) {
    for (int first = 0; first < second; first++) {
      if (!may_share(program, first, second)) continue;
      std::vector<Kernel> kernels = program.kernels;
      kernels[first] = side_by_side(kernels[first], kernels[second]);
      kernels.erase(kernels.begin() + second);
      return launch_together(with_kernels(program, std::move(kernels)));
    }
  }
  return program;
}

}  // namespace exercise
