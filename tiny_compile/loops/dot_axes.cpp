// Which loops of a dot are a matrix product's? Neither their number nor their order says so, but
// which operand's index uses each.
//
//   rows(i0: 2, i1: 8, i2: 8, i3: 128) { r0 = dot(j0: 576) load x[i0 .. i1 .. i2 .. j0],
//                                                          load w[i3*576 + j0] }
// =>
//   rows of the product: i0, i1, i2 (128 of them); columns: i3; depth: j0
//
// The flat number of a list counts the same points in every view of the kernel, so that one part
// of a generated text may see 1024 pixels and another 32 lines of 32.
#include "tiny_compile/loops/dot_axes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/axes.h"

namespace tiny_compile {
namespace {

bool mentions(const Kernel& kernel, const std::vector<bool>& scalars, const Axis& axis) {
  for (size_t id = 0; id < scalars.size(); id++) {
    if (scalars[id] && depends_on(kernel.scalars[id].index, axis.name)) return true;
  }
  return false;
}

std::vector<const Step*> stores_of(const Kernel& kernel) {
  std::vector<const Step*> stores;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store) stores.push_back(&step);
  }
  return stores;
}

// The list in the order of the first store's strides, so that its last axis runs along memory.
std::vector<int> along_memory(const Kernel& kernel, std::vector<int> list) {
  const std::vector<const Step*> stores = stores_of(kernel);
  if (stores.empty()) return list;
  const auto stride = [&](int axis) {
    const Interval bounds = stride_of(stores[0]->index, kernel.axes[axis]).bounds();
    return std::max(std::abs(bounds.low), std::abs(bounds.high));
  };
  std::stable_sort(list.begin(), list.end(),
                   [&](int a, int b) { return stride(a) > stride(b); });
  return list;
}

// Neighbours of a flat number that lie side by side, at most `most`: (1024 pixels of 32) => 32.
int64_t run_along(const Kernel& kernel, const std::vector<int>& list, const Expr& index,
                  int64_t most) {
  if (list.empty()) return 1;
  const Axis& axis = kernel.axes[list.back()];
  const Expr piece = Expr::index({"piece", SymbolKind::Tile}, 1 << 20);
  for (int64_t run = most; run > 1; run /= 2) {
    const Expr part = Expr::index({"within", SymbolKind::Tile}, run);
    const Expr there = substitute(index, {{axis.name, piece * run + part}});
    if (std::abs(coefficient(there, part)) <= 1 &&
        !depends_on(there - part * coefficient(there, part), "within"))
      return std::min(run, axis.extent.bounds().high);
  }
  return 1;
}

// Cycles to bring an element of an operand to its place: vectors where neighbours lie side by
// side in either direction.
double packing_cost(const Kernel& kernel, int operand, const std::vector<int>& list,
                    const std::vector<int>& depth) {
  const std::vector<bool> parts = below(kernel, operand);
  double cost = 0.1;
  for (size_t id = 0; id < parts.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (!parts[id] || scalar.kind != ScalarKind::Load) continue;
    const int64_t run = std::max(run_along(kernel, list, scalar.index, 32),
                                 run_along(kernel, depth, scalar.index, 32));
    cost += 0.2 + 2.0 / static_cast<double>(run);
  }
  return cost;
}

double storing_cost(const Kernel& kernel, const std::vector<int>& columns) {
  double cost = 0;
  for (const Step* store : stores_of(kernel))
    cost += 0.2 + 2.0 / static_cast<double>(run_along(kernel, columns, store->index, 32));
  return cost;
}

// Cycles, roughly: tiles of 12 rows by 16 or 32 lanes, packing, storing.
double cost_of(const Kernel& kernel, const DotAxes& axes) {
  const double m = static_cast<double>(count_of(kernel, axes.rows).bounds().high),
               n = static_cast<double>(count_of(kernel, axes.columns).bounds().high),
               k = static_cast<double>(count_of(kernel, axes.depth).bounds().high);
  const double lanes = n <= 16 ? 16 : std::ceil(n / 32) * 32;
  const double products = std::max(m * lanes * k / 16, 4 * k);
  return products + m * k * packing_cost(kernel, axes.left, axes.rows, axes.depth) +
         n * k * packing_cost(kernel, axes.right, axes.columns, axes.depth) +
         m * n * storing_cost(kernel, axes.columns);
}

// Where the expression divides the bare symbol: (i/3)%4 => 3, 12.
void add_cuts(const Expr& expr, const std::string& name, std::vector<int64_t>& cuts) {
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return;
  const bool divides = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod;
  if (divides && expr.operands()[1].is_constant()) {
    const Expr &of = expr.operands()[0], &by = expr.operands()[1];
    const bool bare = of.kind() == ExprKind::Symbol && of.name() == name;
    const bool twice = of.kind() == ExprKind::FloorDiv && of.operands()[1].is_constant() &&
                       of.operands()[0].kind() == ExprKind::Symbol &&
                       of.operands()[0].name() == name;
    if (bare) cuts.push_back(by.constant());
    if (twice) cuts.push_back(by.constant() * of.operands()[1].constant());
  }
  for (const Expr& operand : expr.operands()) add_cuts(operand, name, cuts);
}

// A kernel under change, and the indices that say how.
struct Rewriting {
  DotView view;
  std::vector<Expr> indices;
  std::string prefix;

  void replace(const Substitution& how) {
    for (Scalar& scalar : view.kernel.scalars) {
      if (!scalar.index.is_constant()) scalar.index = substitute(scalar.index, how);
    }
    for (Step& step : view.kernel.steps) step.index = substitute(step.index, how);
    for (Expr& index : indices) index = substitute(index, how);
  }

  int add_axis(const Expr& extent) {
    std::vector<Axis>& axes = view.kernel.axes;
    axes.push_back({str(prefix, axes.size()), extent});
    return static_cast<int>(axes.size()) - 1;
  }
};

// Divisors of the extent that divide one another, ascending.
std::vector<int64_t> cuts_of(const Rewriting& work, const Axis& axis) {
  std::vector<int64_t> cuts, chain = {1};
  for (const Expr& index : work.indices) add_cuts(index, axis.name, cuts);
  std::sort(cuts.begin(), cuts.end());
  if (!axis.extent.is_constant()) return chain;
  const int64_t extent = axis.extent.constant();
  for (int64_t cut : cuts) {
    if (cut > chain.back() && cut < extent && cut % chain.back() == 0 && extent % cut == 0)
      chain.push_back(cut);
  }
  return chain;
}

std::vector<int> cut(Rewriting& work, int axis) {
  const Axis whole = work.view.kernel.axes[axis];
  const std::vector<int64_t> chain = cuts_of(work, whole);
  if (chain.size() == 1) return {axis};
  std::vector<int> parts;
  Expr sum = 0;
  int64_t above = whole.extent.constant();
  for (size_t c = chain.size(); c-- > 0;) {
    parts.push_back(work.add_axis(above / chain[c]));
    sum = sum + work.view.kernel.axes[parts.back()].symbol() * chain[c];
    above = chain[c];
  }
  work.replace({{whole.name, sum}});
  return parts;
}

// One axis for two neighbours of a list, if the indices cannot tell.
bool merge(Rewriting& work, std::vector<int>& list, size_t at) {
  const Axis outer = work.view.kernel.axes[list[at]],
             inner = work.view.kernel.axes[list[at + 1]];
  const int number = work.add_axis(outer.extent * inner.extent);
  const Expr both = work.view.kernel.axes[number].symbol();
  const Substitution together = {{outer.name, 0}, {inner.name, both}},
                     apart = {{outer.name, floor_div(both, inner.extent)},
                              {inner.name, mod(both, inner.extent)}};
  const auto differs = [&](const Expr& index) {
    return substitute(index, apart) != substitute(index, together);
  };
  if (std::any_of(work.indices.begin(), work.indices.end(), differs)) {
    work.view.kernel.axes.pop_back();
    return false;
  }
  for (Expr& index : work.indices) index = substitute(index, together);
  work.replace(apart);  // of the others
  list[at] = number;
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return true;
}

}  // namespace

Expr count_of(const Kernel& kernel, const std::vector<int>& axes) {
  Expr count = 1;
  for (int axis : axes) count = count * kernel.axes[axis].extent;
  return count;
}

std::vector<bool> below(const Kernel& kernel, int scalar) {
  Step only;
  only.value = scalar;
  return reachable(kernel, only);
}

DotAxes dot_axes(const Kernel& kernel) {
  DotAxes axes;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (kernel.steps[s].kind == StepKind::Dot) axes.step = static_cast<int>(s);
  }
  const Step& dot = kernel.steps[axes.step];
  axes.left = dot.value, axes.right = dot.rhs, axes.depth = dot.inner;
  const std::vector<bool> left = below(kernel, dot.value), right = below(kernel, dot.rhs);
  for (int a = 0; a < kernel.rows; a++) {
    const bool of_left = mentions(kernel, left, kernel.axes[a]),
               of_right = mentions(kernel, right, kernel.axes[a]);
    (of_left && of_right ? axes.batch : of_right ? axes.columns : axes.rows).push_back(a);
  }
  axes.rows = along_memory(kernel, axes.rows);
  axes.columns = along_memory(kernel, axes.columns);
  DotAxes other = axes;
  std::swap(other.left, other.right);
  std::swap(other.rows, other.columns);
  return cost_of(kernel, other) < cost_of(kernel, axes) ? other : axes;
}

DotView view_for(const Kernel& kernel, const std::vector<std::vector<int>>& lists,
                 const std::vector<Expr>& indices, const std::string& prefix) {
  Rewriting work{{kernel, {}}, indices, prefix};
  for (const std::vector<int>& list : lists) {
    std::vector<int> parts;
    for (int axis : list) {
      const std::vector<int> pieces = cut(work, axis);
      parts.insert(parts.end(), pieces.begin(), pieces.end());
    }
    for (size_t at = 0; at + 1 < parts.size();) at += !merge(work, parts, at);
    work.view.lists.push_back(std::move(parts));
  }
  return std::move(work.view);
}

}  // namespace tiny_compile
