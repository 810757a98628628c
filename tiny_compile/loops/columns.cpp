// A reduction down columns reads memory row by row as long as it is all there is:
//
//   r0 = sum(j: 8192) load x[j*2048 + i]       a strip of columns after the other, its rows in order
//
// Steps that share the columns go down them one after the other. Each reads them again from the
// top, and what the first has read is out of the cache by then unless columns are short:
//
//   r0 = sum(j: 8192) load x[j*2048 + i]; store y[..] for (j: 8192) = sub(load x[..], r0)
//
// Two kernels are faster, four to seven times on two cores for these 8192 rows of 2048 (NOTES.md). A
// GPU's block holds short ones in its registers, and the blocks of a cluster longer ones.
#include "tiny_compile/loops/columns.h"

#include <algorithm>

namespace tiny_compile {
namespace {

// Whether the element after this one, down the column, lies further than the next column's.
bool goes_down(const Kernel& kernel, const Step& step, const Expr& index, int row) {
  int64_t down = INT64_MAX;
  for (int axis : step.inner) {
    const int64_t stride = std::abs(coefficient(index, kernel.axes[axis].symbol()));
    if (stride > 0) down = std::min(down, stride);
  }
  const int64_t across = std::abs(coefficient(index, kernel.axes[row].symbol()));
  return across > 0 && across < down && down < INT64_MAX;
}

}  // namespace

int64_t column_length(const Kernel& kernel, const std::vector<int>& rows) {
  int64_t longest = 0;
  if (rows.empty()) return longest;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Reduce) continue;
    const int64_t length = inner_count(kernel, step).bounds().high;
    if (length <= longest) continue;
    const std::vector<bool> read = reachable(kernel, step);
    for (size_t id = 0; id < read.size(); id++) {
      const Scalar& load = kernel.scalars[id];
      if (read[id] && load.kind == ScalarKind::Load &&
          goes_down(kernel, step, load.index, rows.back()))
        longest = length;
    }
  }
  return longest;
}

bool has_long_columns(const Program& program, const Kernel& kernel,
                      const std::vector<int>& rows) {
  // One launch more costs a GPU what it costs each multiprocessor to read 32 Ki elements again. A CPU
  // has no launches, and may read again what its L2 holds.
  const Machine& machine = program.machine;
  const bool gpu = program.target == Target::Cuda;
  const int64_t held = machine.cluster > 1 ? 8 * kChunk : 2 * kChunk;
  const int64_t short_ones = gpu ? held : kChunk,
                few = gpu ? 32 * kChunk * blocks_to_fill(machine) : machine.l2 / 4;
  const int64_t length = column_length(kernel, rows);
  int64_t elements = length;
  for (int row : rows) elements *= kernel.axes[row].extent.bounds().high;
  return length > short_ones && elements > few;
}

// A GPU's threads that go down more than a chunk are few, and wait for each other. (relu's gradient
// and its sums of bf16[2991,192]: .0211 ms, apart .0115.)
bool is_apart_from_points(const Program& program, const Kernel& kernel,
                          const std::vector<int>& rows) {
  return program.target == Target::Cuda ? column_length(kernel, rows) > kChunk
                                        : has_long_columns(program, kernel, rows);
}

bool goes_once(const Kernel& kernel) {
  const auto waits = [&](const Step& step) {
    const std::vector<bool> reached = reachable(kernel, step);
    for (size_t id = 0; id < reached.size(); id++) {
      if (reached[id] && kernel.scalars[id].kind == ScalarKind::Register) return true;
    }
    return false;
  };
  return std::none_of(kernel.steps.begin(), kernel.steps.end(),
                      [&](const Step& step) { return !step.inner.empty() && waits(step); });
}

}  // namespace tiny_compile
