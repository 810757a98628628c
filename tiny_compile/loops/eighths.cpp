// When is it worth while to have eight streams of memory rather than a trip to L1? Where a full chunk's elements are
// cheap and each is found by adding to the one before:
//
//   sum(j0: 4000) mul($0, $0)     three chunks of 1024 by eighths, the last of 928 by way of L1
//   sum(j0: 1000) $0              no full chunk
//   sum(j0: 4000) exp($0)         exp is not cheap
//   sum(j0: 40, j1: 100) $0       runs of 100, a loop each
//
// The tile (tile/row_reductions.cpp) asks the same of each chunk.
#include "tiny_compile/loops/eighths.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/costly_values.h"
#include "tiny_compile/loops/ends_of_rows.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/strips.h"
#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLongRun = 8;  // elements worth a loop of their own
constexpr int kMostCheap = 6;    // ops of an element that is written eight times

void collect_divisions(const Expr& expr, std::vector<Expr>& found) {
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return;
  if (expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod) found.push_back(expr);
  for (const Expr& operand : expr.operands()) collect_divisions(operand, found);
}

// By the contract's tree of floats; of exponentials the maximum alone, where it is found before all else.
bool goes_by_chunks(const Kernel& kernel, const Step& step) {
  return step.kind == StepKind::Reduce && !has_running_results(step.op) && !is_arg(step) &&
         is_float(accumulator(step.op, kernel.scalars[step.value].dtype)) &&
         (step.op != Op::sum_exp || most_chunks(inner_count(kernel, step)) > kMostParts);
}

}  // namespace

std::optional<Runs> runs_of(const Kernel& kernel, const Step& step,
                            const std::vector<int>& wanted) {
  if (step.inner.empty()) return std::nullopt;
  const Axis& last = kernel.axes[step.inner.back()];
  if (step.inner.size() > 1)
    return last.extent.bounds().high < kLongRun ? std::nullopt
                                                : std::optional(Runs{0, last.extent});
  std::vector<Expr> divisions;
  for (int id : wanted) collect_divisions(kernel.scalars[id].index, divisions);
  std::optional<Runs> runs;
  for (const Expr& division : divisions) {
    const Expr shift = division.operands()[0] - last.symbol(), &length = division.operands()[1];
    const Interval numbers = division.operands()[0].bounds();
    if (depends_on(shift, last.name) || !length.is_constant() || length.constant() < kLongRun ||
        numbers.low < 0 || numbers.high >= kUnbounded)
      continue;
    if (!runs || length.constant() < runs->length.constant()) runs = Runs{shift, length};
  }
  return runs;
}

bool has_full_chunks(const Expr& count, bool ends_early) {
  const int64_t most = count.bounds().high;
  return most > kChunk || (most == kChunk && (count.is_constant() || ends_early));
}

bool has_cheap_elements(const Kernel& kernel, const Step& step, const std::vector<int>& wanted,
                        const std::function<bool(int)>& has_array) {
  int ops = 0;
  for (int id : wanted) {
    const Scalar& scalar = kernel.scalars[id];
    if (is_costly(scalar) || has_array(id)) return false;
    ops += scalar.kind == ScalarKind::Apply;
  }
  return ops <= kMostCheap && !runs_of(kernel, step, wanted);
}

bool adds_eighths(const Program& program, const Kernel& kernel) {
  const EndedRows rows = ended_rows(kernel);
  const auto kept =
      costly_values(rows.kernel, needs_of(rows.kernel), most_kept_bytes(program.machine));
  const auto has_array = [&](int id) { return kept.count(id) > 0; };
  std::vector<bool> is_there(rows.kernel.scalars.size());  // in an array, of an earlier step
  for (int s = 0; s < static_cast<int>(rows.kernel.steps.size()); s++) {
    const Step& step = rows.kernel.steps[s];
    const std::vector<int> wanted =
        evaluated(rows.kernel, {s}, [&](int id) -> bool { return is_there[id]; });
    const bool ends_early = !step.inner.empty() && rows.ends.count(step.inner[0]) > 0;
    if (goes_by_chunks(rows.kernel, step) &&
        has_full_chunks(inner_count(rows.kernel, step), ends_early) &&
        has_cheap_elements(rows.kernel, step, wanted, has_array))
      return true;
    for (int id : wanted) is_there[id] = is_there[id] || has_array(id);
  }
  return false;
}

}  // namespace tiny_compile
