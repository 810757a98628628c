// How many rows, of how many elements, what is held of each, and what lies side by side:
//
//   softmax over the last of bf16[4096,1000]  =>  4096 rows of 1000, one value held, exponentials;
//                                                 along its loops 8 elements of 2 bytes an access
#include "tiny_compile/schedule/outline.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAccess = 16;  // bytes

// Of a load's place data says one part for each element, and the lane the other.
bool reads_rows_of_tables(const Kernel& kernel, const std::vector<uint64_t>& axes) {
  const auto is_one = [&](const Scalar& s) {
    return s.kind == ScalarKind::Load && kernel.rows > 0 &&
           depends_on(s.index, kernel.axes[kernel.rows - 1].name) &&
           std::any_of(s.operands.begin(), s.operands.end(),
                       [&](int operand) { return axes[operand] >> kernel.rows != 0; });
  };
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(), is_one);
}

int64_t elements_along(const Kernel& kernel, uint64_t axes) {
  int64_t elements = 1;
  for (size_t a = 0; a < kernel.axes.size(); a++)
    if ((axes >> a & 1) != 0) elements *= kernel.axes[a].extent.constant();
  return elements;
}

void count_steps(const Kernel& kernel, Outline& outline) {
  for (const Step& step : kernel.steps) {
    outline.longest = std::max(outline.longest, elements_of(kernel, step.inner));
    if (step.kind == StepKind::Reduce && !step.inner.empty()) {
      outline.reductions++;
      const DType operand = kernel.scalars[step.value].dtype;
      outline.exact = outline.exact && is_exact(step.op, accumulator(step.op, operand));
      outline.places = outline.places || is_arg(step);
    }
    outline.exponentials = outline.exponentials || step.op == Op::sum_exp;
    outline.writes = outline.writes || (!makes_register(step) && !step.inner.empty());
  }
  outline.long_reductions =
      std::count_if(kernel.steps.begin(), kernel.steps.end(), [&](const Step& s) {
        return s.kind == StepKind::Reduce && elements_of(kernel, s.inner) == outline.longest;
      });
}

}  // namespace

bool has_symbolic_sizes(const Kernel& kernel) {
  return std::any_of(kernel.axes.begin(), kernel.axes.end(),
                     [](const Axis& axis) { return !axis.extent.is_constant(); });
}

int64_t many_threads(const Machine& machine) { return threads_to_fill(machine) / 2; }

Outline outline_of(const Kernel& kernel) {
  Outline outline;
  outline.rows = row_count(kernel).constant();
  count_steps(kernel, outline);
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  const uint64_t of_rows = (uint64_t{1} << kernel.rows) - 1;
  for (size_t id = 0; id < axes.size(); id++) {
    const Scalar& s = kernel.scalars[id];
    if (s.kind != ScalarKind::Load || (axes[id] & of_rows) == 0 || (axes[id] & ~of_rows) == 0)
      continue;
    outline.loads++;
    outline.bytes += size_of(s.dtype) * elements_along(kernel, axes[id] & ~of_rows);
  }
  outline.costly = outline.exponentials;
  for (size_t id = 0; id < axes.size(); id++)
    outline.costly =
        outline.costly || (is_costly(kernel.scalars[id]) && (axes[id] & ~of_rows) != 0);
  const Held held = most_held(kernel);
  outline.streams = std::max<int64_t>(1, held.values);
  outline.words = std::max<int64_t>(1, ceil_divide(held.bytes, kWord));
  outline.held = held.values > 0;
  outline.again = outline.held || outline.exponentials;
  outline.divides = std::any_of(kernel.scalars.begin(), kernel.scalars.end(),
                                [](const Scalar& s) { return s.op == Op::div; });
  outline.chosen = reads_rows_of_tables(kernel, axes);
  return outline;
}

// x[(j/392)*394 + j%392 + 395], of which pairs of elements lie side by side but for the 395.
static Expr without_constant(const Expr& index) {
  for (const Term& term : terms(index))
    if (term.factor.is_constant()) return index - term.coefficient * term.factor.constant();
  return index;
}

Along along(const Program& program, const Kernel& kernel, const Axis& axis) {
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  int64_t width = 8, of_loops = 0, even = 0, odd = 0;
  const auto differs = [&](const Expr& index) {  // from row to row
    return std::any_of(kernel.axes.begin(), kernel.axes.begin() + kernel.rows,
                       [&](const Axis& a) { return depends_on(index, a.name); });
  };
  const auto see = [&](const Expr& index, int b, bool in_loops) {
    const Buffer& buffer = program.buffers[b];
    const bool is_aside = !has_neighbours(index, axis.symbol());
    if (is_aside && !has_neighbours(without_constant(index), axis.symbol())) return;
    const int64_t size = size_of(buffer.type.dtype);
    if (in_loops) of_loops = std::max(of_loops, size);
    const bool is_odd = is_aside || buffer.align < kAccess;
    if (kernel.rows == 0 || differs(index)) (is_odd ? odd : even)++;
    if (is_odd) return;
    width = std::min(width, kAccess / size);
    while (width > 1 && !is_pack(index, axis.symbol(), static_cast<int>(width))) width /= 2;
  };
  for (size_t id = 0; id < axes.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (scalar.kind == ScalarKind::Load)
      see(scalar.index, scalar.buffer, axes[id] >> kernel.rows != 0);
  }
  for (const Step& step : kernel.steps) {
    const bool is_folded = step.kind == StepKind::Fold;  // other threads store that
    if (!makes_register(step) && !is_folded) see(step.index, step.buffer, !step.inner.empty());
  }
  if (odd >= even) width = 1;
  if (odd > 0) width = std::min(width, 2 * kWord / std::max<int64_t>(1, of_loops));
  while (width > 1 && axis.extent.constant() % width != 0) width /= 2;
  const int64_t extent = axis.extent.constant();
  return of_loops == 0 ? Along{1, kWord, true, extent}
                       : Along{width, of_loops, odd == 0, extent};
}

}  // namespace tiny_compile
