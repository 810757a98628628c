// Which products of a dot are with zeros that a graph has put between the elements of an operand?
//
//   dot(j0: 128, j1: 3) load g[..] if (i0 + j1 - 1)%2 < 1 else 0.0, load w[j0*192 + i1*3 + j1]
// =>
//   cut i0 and j1 by 2: even i0 need odd j1, odd i0 even j1
//
// A divisor in the mask is tried with each axis of the rows and of the depth: of i0 = 2*q + r and j1
// = 2*t + u the loops know for some r and u that the mask is never true, whatever q and t.
#include "tiny_compile/loops/dilated_dot.h"

#include <algorithm>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

constexpr int64_t kWorthIt = 1 << 18;  // products that are left out
constexpr int64_t kMostPhases = 16;

int64_t residues_of(const Kernel& kernel, const Cut& cut) {
  return cut.depth < 0 ? 1 : std::min(cut.by, kernel.axes[cut.depth].extent.constant());
}

bool is_masked_with_zero(const Scalar& load) {
  return load.kind == ScalarKind::Load && load.mask >= 0 && load.operands.empty() &&
         load.value.as_double() == 0;
}

Expr at_residue(const Axis& axis, int64_t by, int64_t residue) {
  return Expr::index(axis.name, max(extent_of(axis, by, residue), 1)) * by + residue;
}

void add_divisors(const Expr& expr, std::set<int64_t>& divisors) {
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return;
  const std::vector<Expr>& operands = expr.operands();
  if (expr.kind() == ExprKind::Mod && operands[1].is_constant())
    divisors.insert(operands[1].constant());
  for (const Expr& operand : operands) add_divisors(operand, divisors);
}

// Which residues of the depth the condition lets by at each of the row's: at most one, and of all
// pairs no more than half.
std::optional<Cut> cut_by(const Kernel& kernel, const Comparison& condition, Cut cut) {
  const Axis& row = kernel.axes[cut.row];
  const int64_t residues = residues_of(kernel, cut);
  int64_t needed = 0;
  for (int64_t r = 0; r < cut.by; r++) {
    cut.needs.push_back(-1);
    for (int64_t u = 0; u < residues; u++) {
      Substitution there = {{row.name, at_residue(row, cut.by, r)}};
      if (cut.depth >= 0)
        there.push_back(
            {kernel.axes[cut.depth].name, at_residue(kernel.axes[cut.depth], cut.by, u)});
      if (Comparison{substitute(condition.difference, there), condition.op}.never()) continue;
      if (cut.needs.back() >= 0) return std::nullopt;
      cut.needs.back() = static_cast<int>(u);
      needed++;
    }
  }
  return 2 * needed <= cut.by * residues ? std::optional(std::move(cut)) : std::nullopt;
}

bool is_free(const Dilated& dot, int axis) {
  return std::none_of(dot.cuts.begin(), dot.cuts.end(),
                      [&](const Cut& cut) { return cut.row == axis || cut.depth == axis; });
}

// The divisors in the condition, and all of a short axis: a view cuts i0%2 < 1 into axes of its own.
std::optional<Cut> find_cut(const Dilated& dot, const Comparison& condition) {
  const Kernel& kernel = dot.view.kernel;
  std::vector<int> depths = {-1};
  for (int depth : dot.view.lists[1]) {
    if (is_free(dot, depth) && depends_on(condition.difference, kernel.axes[depth].name))
      depths.push_back(depth);
  }
  for (int row : dot.view.lists[0]) {
    const Axis& axis = kernel.axes[row];
    if (!is_free(dot, row) || !depends_on(condition.difference, axis.name) ||
        uses(kernel, dot.full, row))
      continue;
    std::set<int64_t> divisors = {axis.extent.constant()};
    add_divisors(condition.difference, divisors);
    for (int64_t by : divisors) {
      if (by < 2 || by > kMostPhases || by > axis.extent.constant()) continue;
      for (int depth : depths) {
        if (auto cut = cut_by(kernel, condition, {row, depth, by, {}})) return cut;
      }
    }
  }
  return std::nullopt;
}

// How many of so many products are not needed.
int64_t spared(const Dilated& dot) {
  const Kernel& kernel = dot.view.kernel;
  double all = 1, needed = 1;
  for (const std::vector<int>& list : dot.view.lists)
    all *= static_cast<double>(count_of(kernel, list).constant());
  for (const Cut& cut : dot.cuts) {
    const double residues = static_cast<double>(residues_of(kernel, cut));
    const auto some = std::count_if(cut.needs.begin(), cut.needs.end(),
                                    [](int residue) { return residue >= 0; });
    needed *= static_cast<double>(some) / (static_cast<double>(cut.by) * residues);
  }
  return static_cast<int64_t>(all * (1 - needed));
}

Dilated with_cuts(Dilated dot, int thin, int full) {
  dot.thin = thin, dot.full = full;
  const Kernel& kernel = dot.view.kernel;
  if (!is_masked_with_zero(kernel.scalars[thin])) return dot;
  for (int id : conjuncts(kernel, kernel.scalars[thin].mask)) {
    const auto condition = comparison(kernel, kernel.scalars[id]);
    if (!condition) continue;
    if (auto cut = find_cut(dot, *condition)) dot.cuts.push_back(*cut);
  }
  return dot;
}

// One dot, then stores of each point; all sizes are known.
bool is_dot_of_known_size(const Kernel& kernel) {
  if (kernel.rows == 0 || kernel.steps.size() < 2 || kernel.steps[0].kind != StepKind::Dot)
    return false;
  const DType dtype = kernel.scalars[kernel.steps[0].value].dtype;
  return (is_float(dtype) || is_integer(dtype)) &&
         std::all_of(kernel.axes.begin(), kernel.axes.end(),
                     [](const Axis& axis) {
                       return axis.extent.is_constant() && axis.extent.constant() > 0;
                     }) &&
         std::all_of(kernel.steps.begin() + 1, kernel.steps.end(), [](const Step& step) {
           return step.kind == StepKind::Store && step.inner.empty();
         });
}

}  // namespace

bool uses(const Kernel& kernel, int scalar, int axis) {
  const std::vector<bool> parts = below(kernel, scalar);
  for (size_t id = 0; id < parts.size(); id++) {
    if (parts[id] && depends_on(kernel.scalars[id].index, kernel.axes[axis].name)) return true;
  }
  return false;
}

int64_t phases(const std::vector<Cut>& cuts) {
  int64_t count = 1;
  for (const Cut& cut : cuts) count *= cut.by;
  return count;
}

int64_t residues_of(const Dilated& dot, const Cut& cut) {
  return residues_of(dot.view.kernel, cut);
}

Expr extent_of(const Axis& axis, int64_t by, int64_t residue) {
  return ceil_divide(std::max<int64_t>(axis.extent.constant() - residue, 0), by);
}

std::optional<Dilated> dilated(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cpp || !is_dot_of_known_size(kernel)) return std::nullopt;
  const Step& step = kernel.steps[0];
  if (kernel.scalars[step.value].mask < 0 && kernel.scalars[step.rhs].mask < 0)
    return std::nullopt;
  std::vector<Expr> indices;
  for (const Scalar& scalar : kernel.scalars) {
    if (!scalar.index.is_constant()) indices.push_back(scalar.index);
  }
  const Dilated dot{view_for(kernel, {row_axes(kernel), step.inner}, indices), 0, -1, -1, {}};
  Dilated best = with_cuts(dot, step.value, step.rhs);
  if (best.cuts.empty()) best = with_cuts(dot, step.rhs, step.value);
  const bool fits = !best.cuts.empty() && phases(best.cuts) <= kMostPhases;
  return fits && spared(best) >= kWorthIt ? std::optional(std::move(best)) : std::nullopt;
}

}  // namespace tiny_compile
