// What is a kernel's normal form? normalize drops what no step reaches, so passes may leave rubbish
// behind:
//   $0 = load x[i] ; $1 = exp $0 ; $2 = neg $0 ; store y[i] = $1   =>   $2 is gone
// and gives equal kernels equal values whatever order a pass built them in.
#include <algorithm>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {
namespace {

// Every scalar a step names directly.
std::vector<int> roots(const Step& step) {
  std::vector<int> result;
  for (int id : step.roots()) {
    if (id >= 0) result.push_back(id);
  }
  return result;
}

std::vector<int> children(const Scalar& scalar) {
  std::vector<int> result = scalar.operands;
  if (scalar.mask >= 0) result.push_back(scalar.mask);
  return result;
}

// Scalars in the order in which a walk from `root` leaves them; `seen` is shared between walks.
void walk(const Kernel& kernel, int root, std::vector<bool>& seen, std::vector<int>& order) {
  std::vector<std::pair<int, size_t>> stack;  // scalar, next child
  if (seen[root]) return;
  seen[root] = true;
  stack.push_back({root, 0});
  while (!stack.empty()) {
    const auto [id, next] = stack.back();
    const std::vector<int> below = children(kernel.scalars[id]);
    if (next == below.size()) {
      order.push_back(id);
      stack.pop_back();
      continue;
    }
    stack.back().second++;
    if (seen[below[next]]) continue;
    seen[below[next]] = true;
    stack.push_back({below[next], 0});
  }
}

// Registers nobody reads go, with the steps that make them.
std::vector<bool> live_steps(const Kernel& kernel) {
  std::vector<bool> live(kernel.steps.size()), seen(kernel.scalars.size());
  for (size_t i = kernel.steps.size(); i-- > 0;) {
    if (makes_register(kernel.steps[i]) && !live[i]) continue;
    live[i] = true;
    std::vector<int> order;
    for (int root : roots(kernel.steps[i])) walk(kernel, root, seen, order);
    for (int id : order) {
      if (kernel.scalars[id].kind == ScalarKind::Register) live[kernel.scalars[id].step] = true;
    }
  }
  return live;
}

int renamed(const std::vector<int>& numbers, int old) { return old < 0 ? old : numbers[old]; }

void renumber_scalars(Kernel& kernel, const std::vector<int>& step_numbers) {
  std::vector<bool> seen(kernel.scalars.size());
  std::vector<int> order, numbers(kernel.scalars.size(), -1);
  for (const Step& step : kernel.steps) {
    for (int root : roots(step)) walk(kernel, root, seen, order);
  }
  std::vector<Scalar> scalars;
  scalars.reserve(order.size());
  for (int id : order) {
    numbers[id] = static_cast<int>(scalars.size());
    Scalar scalar = std::move(kernel.scalars[id]);
    for (int& operand : scalar.operands) operand = numbers[operand];
    scalar.mask = renamed(numbers, scalar.mask);
    scalar.step = renamed(step_numbers, scalar.step);
    scalars.push_back(std::move(scalar));
  }
  kernel.scalars = std::move(scalars);
  for (Step& step : kernel.steps) {
    for (int* id : step.roots()) *id = renamed(numbers, *id);
  }
}

void drop_dead_steps(Kernel& kernel) {
  const std::vector<bool> live = live_steps(kernel);
  std::vector<int> numbers(kernel.steps.size(), -1);
  std::vector<Step> steps;
  for (size_t i = 0; i < kernel.steps.size(); i++) {
    if (!live[i]) continue;
    numbers[i] = static_cast<int>(steps.size());
    steps.push_back(std::move(kernel.steps[i]));
  }
  kernel.steps = std::move(steps);
  renumber_scalars(kernel, numbers);
}

void rename_axes(Kernel& kernel) {
  std::vector<int> numbers(kernel.axes.size(), -1);
  std::vector<Axis> axes;
  Substitution names;
  auto keep = [&](int axis) {
    if (numbers[axis] >= 0) return;
    numbers[axis] = static_cast<int>(axes.size());
    const bool row = axis < kernel.rows;
    Axis renamed = kernel.axes[axis];
    renamed.name = (row ? "i" : "j") + std::to_string(numbers[axis] - (row ? 0 : kernel.rows));
    if (renamed.name != kernel.axes[axis].name)
      names.push_back({kernel.axes[axis].name, renamed.symbol()});
    axes.push_back(std::move(renamed));
  };
  for (int axis = 0; axis < kernel.rows; axis++) keep(axis);
  for (const Step& step : kernel.steps) {
    for (int axis : step.inner) keep(axis);
  }
  kernel.axes = std::move(axes);
  for (Step& step : kernel.steps) {
    for (int& axis : step.inner) axis = numbers[axis];
    if (!names.empty()) step.index = substitute(step.index, names);
  }
  if (names.empty()) return;
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, names);
}

}  // namespace

Kernel normalize(Kernel kernel) {
  drop_dead_steps(kernel);
  rename_axes(kernel);
  return kernel;
}

std::vector<bool> reachable(const Kernel& kernel, const Step& step) {
  std::vector<bool> seen(kernel.scalars.size());
  std::vector<int> order;
  for (int root : roots(step)) walk(kernel, root, seen, order);
  return seen;
}

}  // namespace tiny_compile
