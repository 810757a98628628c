// Question: may these rows be scattered together? A block that owns a run of the result needs an index that
// all columns share; a table in shared memory integers, whose sum is the same in any order; a warp enough
// updates, or few rows. Else a thread does its row.
#include "tiny_compile/loops/scatter_rules.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/split_scatter.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostUpdates = 1 << 30;           // that blocks look through for their runs
constexpr int64_t kFewUpdates = 1024;               // of a row: a warp is enough
constexpr int64_t kMostTargets = int64_t{1} << 31;  // of a warp

// A store of the whole row, and then a scatter into it.
bool is_base_and_scatter(const Kernel& kernel) {
  if (kernel.steps.size() != 2) return false;
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  return base.kind == StepKind::Store && scatter.kind == StepKind::Scatter &&
         base.buffer == scatter.buffer && base.inner.size() <= 1;
}

// The scatter's places are the base's, with the index for the base's loop.
bool same_places(const Kernel& kernel) {
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  const Expr& count = scatter.limit;
  const Expr target =
      count.is_constant(1) ? 0 : Expr::index(Symbol{"target", SymbolKind::Tile}, count);
  Substitution loop;
  for (int axis : base.inner) loop.push_back({kernel.axes[axis].name, target});
  return inner_count(kernel, base) == count &&
         substitute(base.index, loop) == substitute(scatter.index, {{indirect(0), target}});
}

bool scatters_runs(const Program& program, const Kernel& kernel) {
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  const int64_t updates = inner_count(kernel, scatter).constant();
  const uint64_t rows = (uint64_t{1} << kernel.rows) - 1;
  return scatter.mask < 0 && scatter.limit.constant() >= 2 && updates >= 1 &&
         updates <= kMostUpdates && !buffers_read(program, kernel)[base.buffer] &&
         (axes_of_scalars(kernel)[scatter.other] & rows) == 0 && same_places(kernel);
}

// Whether what chooses neighbouring updates' targets lies side by side in memory, or is not read.
bool reads_along_memory(const Kernel& kernel, const Step& scatter) {
  Step only;
  only.value = scatter.other;
  const std::vector<bool> needed = reachable(kernel, only);
  const Expr update = kernel.axes[scatter.inner[0]].symbol();
  for (size_t id = 0; id < needed.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (needed[id] && scalar.kind == ScalarKind::Load && coefficient(scalar.index, update) != 1)
      return false;
  }
  return true;
}

bool scatters_to_tables(const Program& program, const Kernel& kernel) {
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  if (scatter.op != Op::scatter_add || is_float(scatter.dtype) || scatter.inner.size() != 1)
    return false;
  const int64_t targets = scatter.limit.constant(),
                updates = inner_count(kernel, scatter).constant();
  return targets > 0 &&
         targets * std::max<int64_t>(size_of(scatter.dtype), 4) <=
             table_bytes(program.machine) &&
         updates >= kFewUpdates && updates < int64_t{1} << 31 &&
         inner_count(kernel, base).is_constant(targets) &&
         reads_along_memory(kernel, scatter) && !buffers_read(program, kernel)[base.buffer];
}

// Of so many rows a thread each is as good, where none has chunks.
bool fills_with_warps(const Program& program, const Kernel& kernel) {
  return 32 * row_count(kernel).constant() >= threads_to_fill(program.machine);
}

bool scatters_in_warps(const Program& program, const Kernel& kernel) {
  bool chunks = false, scatters = false;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Store && step.kind != StepKind::Scatter) return false;
    if (step.kind == StepKind::Store) continue;
    if (step.limit.constant() >= kMostTargets ||
        inner_count(kernel, step).constant() >= kMostTargets - 1024)
      return false;
    scatters = true;
    chunks = chunks || goes_in_chunks(kernel, step);
  }
  return scatters && !loads_what_it_stores(program, kernel) &&
         (chunks || !fills_with_warps(program, kernel));
}

}  // namespace

ScatterBy scatters_by(const Program& program, const Kernel& kernel) {
  if (!sizes(program).empty()) return ScatterBy::Thread;
  const bool is_pair = is_base_and_scatter(kernel);
  if (is_pair && scatters_runs(program, kernel)) return ScatterBy::Runs;
  if (is_pair && scatters_to_tables(program, kernel)) return ScatterBy::Tables;
  return scatters_in_warps(program, kernel) ? ScatterBy::Warps : ScatterBy::Thread;
}

bool goes_in_chunks(const Kernel& kernel, const Step& step) {
  return step.kind == StepKind::Scatter && scatters_in_chunks(step.op, step.dtype) &&
         inner_count(kernel, step).bounds().high > kChunk;
}

}  // namespace tiny_compile
