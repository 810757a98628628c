// Which loops does a kernel have, and which of them is innermost? Fusion leaves axes as the ops
// of the graph had them; loops that always step together are one, and the one along which memory
// is contiguous goes last.
//
//   rows(i0: 8, i1: 4) { store y[i0*4 + i1] = neg(load x[i0*4 + i1]) }
// =>
//   rows(i0: 32) { store y[i0] = neg(load x[i0]) }
#include "tiny_compile/loops/axes.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

constexpr int64_t kNear = 8;   // elements that a line of memory holds, at least
constexpr int64_t kPack = 16;  // bytes of an access

// Both axes are rows, or both stand next to each other wherever a step lists either.
bool adjacent(const Kernel& kernel, int a, int b) {
  if (b < kernel.rows) return true;
  for (const Step& step : kernel.steps) {
    const auto at = std::find(step.inner.begin(), step.inner.end(), a);
    const bool has_b = std::count(step.inner.begin(), step.inner.end(), b) > 0;
    if (at == step.inner.end() && !has_b) continue;
    if (at == step.inner.end() || at + 1 == step.inner.end() || at[1] != b) return false;
  }
  return true;
}

// a*extent(b) + b is all that any index knows of a and b.
bool collapse(Kernel& kernel, int a, int b) {
  const Axis merged{"m" + kernel.axes[b].name, kernel.axes[a].extent * kernel.axes[b].extent};
  const Expr m = merged.symbol(), width = kernel.axes[b].extent;
  const std::string &name_a = kernel.axes[a].name, &name_b = kernel.axes[b].name;
  const Substitution together = {{name_a, 0}, {name_b, m}};
  const Substitution apart = {{name_a, floor_div(m, width)}, {name_b, mod(m, width)}};
  auto fits = [&](const Expr& index) {
    return index.is_constant() || substitute(index, apart) == substitute(index, together);
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (!fits(scalar.index)) return false;
  }
  for (const Step& step : kernel.steps) {
    if (!fits(step.index)) return false;
  }
  for (Scalar& scalar : kernel.scalars) {
    if (!scalar.index.is_constant()) scalar.index = substitute(scalar.index, together);
  }
  for (Step& step : kernel.steps) step.index = substitute(step.index, together);
  for (Step& step : kernel.steps) std::erase(step.inner, a);
  kernel.axes[b] = merged;
  kernel.axes[a].extent = 1;
  return true;
}

// Rows of extent 1 left by collapse go; inner ones are no step's any more.
Kernel drop_unit_rows(Kernel kernel) {
  std::vector<int> numbers;
  std::vector<Axis> axes;
  Substitution units;
  int rows = 0;
  for (int a = 0; a < static_cast<int>(kernel.axes.size()); a++) {
    numbers.push_back(static_cast<int>(axes.size()));
    if (a < kernel.rows && kernel.axes[a].extent.is_constant(1)) {
      units.push_back({kernel.axes[a].name, 0});
      continue;
    }
    rows += a < kernel.rows;
    axes.push_back(kernel.axes[a]);
  }
  kernel.axes = std::move(axes);
  kernel.rows = rows;
  for (Step& step : kernel.steps) {
    for (int& axis : step.inner) axis = numbers[axis];
    step.index = substitute(step.index, units);
  }
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, units);
  return normalize(std::move(kernel));
}

// Accesses that are contiguous along an axis. Where each point is stored, the store decides: loads
// that run across it are transposed in tiles, a store is not. What inner loops read counts more than
// all that is stored once a row, and neighbours in one line of memory count as well.
int contiguous_accesses(const Kernel& kernel, int axis) {
  const bool points = !is_sequential(kernel);
  const Expr symbol = kernel.axes[axis].symbol();
  int count = 0;
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind != ScalarKind::Load) continue;
    const int64_t step = std::abs(coefficient(scalar.index, symbol));
    if (step == 1) count += points ? 1 : 2;
    if (step > 1 && step <= kNear && !points) count += 2;
  }
  bool is_stored_once = false;
  for (const Step& step : kernel.steps) {
    if (makes_register(step) || coefficient(step.index, symbol) != 1) continue;
    if (points) count += static_cast<int>(kernel.scalars.size()) + 1;
    if (!points && !step.inner.empty()) count += 2;
    is_stored_once = is_stored_once || (!points && step.inner.empty());
  }
  return count + is_stored_once;
}

// Whether what a row's loops go over lies further apart between neighbours along one axis than along
// another, and nowhere side by side: then what a row has one of is no reason for that axis.
bool parts_elements(const Kernel& kernel, int axis, int other) {
  const Expr one = kernel.axes[axis].symbol(), two = kernel.axes[other].symbol();
  bool is_further = false, is_near = false;
  const auto see = [&](const Expr& index) {
    const bool is_of_loops =
        std::any_of(kernel.axes.begin() + kernel.rows, kernel.axes.end(),
                    [&](const Axis& loop) { return depends_on(index, loop.name); });
    const int64_t step = std::abs(coefficient(index, one));
    if (!is_of_loops || step == 0) return;
    is_near = is_near || step <= kNear;
    is_further = is_further || step > std::abs(coefficient(index, two));
  };
  for (const Scalar& scalar : kernel.scalars)
    if (scalar.kind == ScalarKind::Load) see(scalar.index);
  for (const Step& step : kernel.steps)
    if (!makes_register(step)) see(step.index);
  return is_further && !is_near;
}

// Where all loops stand, rows first, if they are counted through.
Expr place_in_all(const Kernel& kernel) {
  Expr place = 0;
  for (const Axis& axis : kernel.axes) place = place * axis.extent + axis.symbol();
  return place;
}

bool is_made_of_sizes(const Expr& expr) {
  const std::vector<Symbol> in = symbols(expr);
  return !in.empty() && std::all_of(in.begin(), in.end(), [](const Symbol& symbol) {
    return symbol.kind == SymbolKind::Size;
  });
}

// Whether all that is done over these loops may be done in another order: nothing is added up in floats, no place is
// found, nothing stored, and no other loops share one of them.
bool may_go_in_any_order(const Kernel& kernel, const std::vector<int>& loops) {
  const auto shares = [&](const Step& step) {
    return std::any_of(step.inner.begin(), step.inner.end(), [&](int axis) {
      return std::find(loops.begin(), loops.end(), axis) != loops.end();
    });
  };
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    return !shares(step) ||
           (step.inner == loops && step.kind == StepKind::Reduce && !is_arg(step) &&
            is_reduction(step.op) &&
            is_exact(step.op, accumulator(step.op, kernel.scalars[step.value].dtype)));
  });
}

// The loops in the order in which the first array lies that all of them go through; as they are, where none does.
std::vector<int> by_strides(const Kernel& kernel, std::vector<int> loops) {
  for (const Scalar& load : kernel.scalars) {
    const auto stride = [&](int axis) {
      return std::abs(coefficient(load.index, kernel.axes[axis].symbol()));
    };
    if (load.kind != ScalarKind::Load ||
        !std::all_of(loops.begin(), loops.end(), [&](int axis) { return stride(axis) != 0; }))
      continue;
    std::stable_sort(loops.begin(), loops.end(),
                     [&](int a, int b) { return stride(a) > stride(b); });
    break;
  }
  return loops;
}

}  // namespace

bool folds_rows(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Fold; });
}

bool is_sequential(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(), [](const Step& step) {
    return step.kind != StepKind::Store || !step.inner.empty();
  });
}

Kernel as_points(Kernel kernel) {
  const size_t loops = kernel.axes.size() - static_cast<size_t>(kernel.rows);
  const auto stores_all = [&](const Step& step) {
    return step.kind == StepKind::Store && step.inner.size() == loops;
  };
  if (loops == 0 || !std::all_of(kernel.steps.begin(), kernel.steps.end(), stores_all))
    return kernel;
  for (Step& step : kernel.steps) step.inner.clear();
  kernel.rows = static_cast<int>(kernel.axes.size());
  return normalize(std::move(kernel));
}

Kernel with_short_rows_as_points(const Program& program, Kernel kernel) {
  const size_t loops = kernel.axes.size() - static_cast<size_t>(kernel.rows);
  const Expr place = place_in_all(kernel);
  const auto is_pack = [&](const Step& step) {
    if (step.kind != StepKind::Store || step.rhs >= 0 || step.inner.size() != loops)
      return false;
    const Expr count = inner_count(kernel, step);
    return count.is_constant() && kPack % (count.constant() * size_of(step.dtype)) == 0 &&
           (step.index - place).is_constant(0);
  };
  if (program.target != Target::Cuda || loops == 0 || kernel.rows == 0 ||
      !row_count(kernel).is_constant() ||
      !std::all_of(kernel.steps.begin(), kernel.steps.end(), is_pack))
    return kernel;
  return as_points(std::move(kernel));
}

bool depends_on_any(const Kernel& kernel, const Expr& index, const std::vector<int>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](int axis) { return depends_on(index, kernel.axes[axis].name); });
}

bool depends_on_rows(const Kernel& kernel, const Expr& index) {
  return depends_on_any(kernel, index, row_axes(kernel));
}

bool step_as_one(const Kernel& kernel, const std::vector<int>& loops) {
  const auto fits = [&](const Expr& index) {
    for (size_t k = 1; k < loops.size(); k++) {
      const Axis &outer = kernel.axes[loops[k - 1]], &inner = kernel.axes[loops[k]];
      if (coefficient(index, outer.symbol()) !=
          coefficient(index, inner.symbol()) * inner.extent.bounds().high)
        return false;
    }
    return true;
  };
  return std::all_of(kernel.scalars.begin(), kernel.scalars.end(),
                     [&](const Scalar& s) { return fits(s.index); }) &&
         std::all_of(kernel.steps.begin(), kernel.steps.end(),
                     [&](const Step& s) { return fits(s.index); });
}

bool divides(const Expr& index) {
  if (index.kind() == ExprKind::FloorDiv || index.kind() == ExprKind::Mod) return true;
  if (index.is_constant() || index.kind() == ExprKind::Symbol) return false;
  return std::any_of(index.operands().begin(), index.operands().end(), divides);
}

Expr stride_of(const Expr& index, const Axis& axis) {
  const int64_t step = coefficient(index, axis.symbol());
  if (step != 0) return step;
  const Expr stride = substitute(index, {{axis.name, axis.symbol() + 1}}) - index;
  return is_made_of_sizes(stride) ? stride : Expr(0);
}

Kernel collapse_axes(Kernel kernel) {
  const int folded = folds_rows(kernel) ? 1 : 0;
  for (bool changed = true; changed;) {
    changed = false;
    const int count = static_cast<int>(kernel.axes.size());
    for (int a = 0; a + 1 < kernel.rows - folded && !changed; a++)
      changed = collapse(kernel, a, a + 1);
    for (int a = kernel.rows; a < count && !changed; a++) {
      for (int b = kernel.rows; b < count && !changed; b++)
        changed = a != b && adjacent(kernel, a, b) && collapse(kernel, a, b);
    }
    if (changed) kernel = drop_unit_rows(std::move(kernel));
  }
  return kernel;
}

Kernel order_loops(Kernel kernel) {
  const Kernel given = kernel;
  for (size_t s = 0; s < given.steps.size(); s++) {
    if (may_go_in_any_order(given, given.steps[s].inner))
      kernel.steps[s].inner = by_strides(given, given.steps[s].inner);
  }
  return kernel == given ? kernel : normalize(std::move(kernel));
}

Kernel order_rows(Kernel kernel) {
  const bool fixed = std::any_of(kernel.steps.begin(), kernel.steps.end(), [](const Step& s) {
    return s.kind == StepKind::Dot || s.kind == StepKind::Fold;
  });
  const int last = kernel.rows - 1;
  int best = last;
  for (int row = 0; row < kernel.rows; row++) {
    if (contiguous_accesses(kernel, row) > contiguous_accesses(kernel, best) &&
        !parts_elements(kernel, row, last))
      best = row;
  }
  if (fixed || best < 0 || best == last) return kernel;
  std::rotate(kernel.axes.begin() + best, kernel.axes.begin() + best + 1,
              kernel.axes.begin() + kernel.rows);
  return normalize(std::move(kernel));
}

}  // namespace tiny_compile
