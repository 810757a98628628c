// Fusion gives loops that it could not line up axes of their own, though they are as long as
// others:
//
//   r0 = sum(j0: 2, j1: 49) load x[i*98 + j0*49 + j1]
//   store y[..] for (j2: 2, j3: 49) = sub(load x[i*98 + j2*49 + j3], r0)
// =>
//   r0 = sum(j0: 2, j1: 49) load x[i*98 + j0*49 + j1]
//   store y[..] for (j0: 2, j1: 49) = sub(load x[i*98 + j0*49 + j1], r0)
//
// An axis is a name for a loop, and no step has two loops of one name.
#include "tiny_compile/loops/share_loops.h"

#include <algorithm>
#include <set>

namespace tiny_compile {
namespace {

bool as_long(const Kernel& kernel, const std::vector<int>& a, const std::vector<int>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](int x, int y) {
    return kernel.axes[x].extent == kernel.axes[y].extent;
  });
}

// Axes by what they are called from now on.
std::vector<int> renaming(const Kernel& kernel, const std::vector<int>& from,
                          const std::vector<int>& to) {
  std::vector<int> names(kernel.axes.size());
  for (size_t axis = 0; axis < names.size(); axis++) names[axis] = static_cast<int>(axis);
  for (size_t k = 0; k < from.size(); k++) names[from[k]] = to[k];
  return names;
}

bool keeps_apart(const std::vector<int>& names, const Step& step) {
  std::set<int> seen;
  return std::all_of(step.inner.begin(), step.inner.end(),
                     [&](int axis) { return seen.insert(names[axis]).second; });
}

void rename(Kernel& kernel, const std::vector<int>& names) {
  Substitution symbols;
  for (size_t axis = 0; axis < names.size(); axis++) {
    if (names[axis] != static_cast<int>(axis))
      symbols.push_back({kernel.axes[axis].name, kernel.axes[names[axis]].symbol()});
  }
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, symbols);
  for (Step& step : kernel.steps) {
    step.index = substitute(step.index, symbols);
    for (int& axis : step.inner) axis = names[axis];
  }
}

}  // namespace

Kernel share_loops(Kernel kernel) {
  for (size_t later = 0; later < kernel.steps.size(); later++) {
    for (size_t first = 0; first < later; first++) {
      const std::vector<int>&from = kernel.steps[later].inner, &to = kernel.steps[first].inner;
      if (from == to || !as_long(kernel, from, to)) continue;
      const std::vector<int> names = renaming(kernel, from, to);
      if (!std::all_of(kernel.steps.begin(), kernel.steps.end(),
                       [&](const Step& step) { return keeps_apart(names, step); }))
        continue;
      rename(kernel, names);
      break;
    }
  }
  return normalize(std::move(kernel));
}

}  // namespace tiny_compile
