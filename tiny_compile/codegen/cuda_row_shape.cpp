// Who reduces which part of a row? One warp takes a chunk of 1024 in registers; short rows
// share a warp, long ones take a block, very long ones several:
//
//   rows of 7       8 lanes a row, 4 rows a warp, four times
//   rows of 1000    a warp a row, 32 values a lane
//   rows of 4096    a block of 4 warps, a chunk each; results meet in shared memory
//   rows of 50257   a block of 17 warps, three chunks each
//
// The policy lays most rows out instead (schedule/layouts.h): what comes here are rows that fold, and
// kernels that nobody has scheduled.
#include "tiny_compile/codegen/cuda_row_shape.h"

#include <algorithm>

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cuda_fold.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {
namespace {

constexpr int kMostWarps = 20;          // of a block that shares one row
constexpr int kBlockWarps = 32;         // of any block
constexpr int kFewWarps = 8;            // of a block that reads its row once, at most
constexpr int kTakingTurns = 4;         // of such a block where rows are many
constexpr int64_t kManyRows = 1 << 11;  // from here on these fill a GPU
// Blocks whose threads have this few values end sooner than the next one is launched: each takes
// several rows, and the loads of all before the first one's arithmetic.
constexpr int64_t kLittle = 4;
constexpr int64_t kManyThreads = 1 << 20;
constexpr int64_t kTurns = 4;
constexpr int kLargeBlock = 256;
constexpr int kFolding = 3;  // blocks that fold: 168 registers a thread
std::vector<const Step*> steps_over(const Kernel& kernel, const std::vector<int>& inner) {
  std::vector<const Step*> steps;
  for (const Step& step : kernel.steps) {
    if (step.inner == inner) steps.push_back(&step);
  }
  return steps;
}

// Neighbouring rows whose elements take turns in memory, as the columns of an [n,7] do. A block
// that has all of them reads that memory once (the benchmark's colsum/7: 0.089 -> 0.068 ms).
int64_t rows_that_alternate(const Kernel& kernel) {
  if (kernel.rows == 0) return 1;
  const Axis& last = kernel.axes[kernel.rows - 1];
  for (const Scalar& load : kernel.scalars) {
    if (load.kind != ScalarKind::Load || coefficient(load.index, last.symbol()) != 1) continue;
    for (size_t a = kernel.rows; a < kernel.axes.size(); a++) {
      if (last.extent.is_constant(coefficient(load.index, kernel.axes[a].symbol())))
        return last.extent.constant();
    }
  }
  return 1;
}

// Neighbouring elements that a thread takes at once.
int widest(const CudaText& text, const std::vector<int>& inner, int64_t count) {
  if (inner.empty()) return 1;
  // 0: the last pack may be short, unless rows of other loops follow
  const int64_t whole =
      inner.size() == 1 ? 0 : text.kernel.axes[inner.back()].extent.constant();
  const int vector = text.widest(steps_over(text.kernel, inner), inner.back(), whole);
  if (count < vector) return 1;
  const int asked = schedule_of(text.kernel).vector;
  return asked > 0 ? std::min(vector, asked) : vector;
}

Spread spread_of(const CudaText& text, const RowShape& shape, const std::vector<int>& inner) {
  Spread s;
  s.inner = inner;
  s.count = inner_count(text.kernel, *steps_over(text.kernel, inner)[0]).constant();
  s.vector = widest(text, inner, s.count);
  while (s.vector > 1 && s.vector * shape.lanes > power_of_two_from(s.count)) s.vector /= 2;
  s.chunks = ceil_divide(s.count, kChunk);
  s.rounds = ceil_divide(s.chunks, shape.warps);
  const int64_t size = s.chunks > 1 ? kChunk : power_of_two_from(s.count);
  s.packs = std::max<int64_t>(1, size / (shape.lanes * s.vector));
  s.size = s.chunks > 1 ? kChunk : shape.lanes * s.values();
  return s;
}

}  // namespace

const Spread& RowShape::over(const std::vector<int>& inner) const {
  const auto found = std::find_if(spreads.begin(), spreads.end(),
                                  [&](const Spread& s) { return s.inner == inner; });
  CHECK(found != spreads.end(), "no spread for these loops");
  return *found;
}

namespace {

void spread_rows(const CudaText& text, RowShape& shape) {
  shape.spreads.clear();
  for (const Step& step : text.kernel.steps) {
    const bool known = std::any_of(shape.spreads.begin(), shape.spreads.end(),
                                   [&](const Spread& s) { return s.inner == step.inner; });
    if (!known) shape.spreads.push_back(spread_of(text, shape, step.inner));
  }
}

// The loops that go over most of a row, and whether several passes do.
struct Longest {
  std::vector<int> inner;
  int64_t count = 1;
  bool again = false;
};

Longest longest_of(const Kernel& kernel, const std::vector<std::vector<int>>& passes) {
  Longest row{kernel.steps[0].inner, 1, false};
  for (const Step& step : kernel.steps) {
    const int64_t count = inner_count(kernel, step).constant();
    if (count > row.count) row.count = count, row.inner = step.inner;
  }
  const auto goes_over = [&](const std::vector<int>& pass) {
    return kernel.steps[pass[0]].inner == row.inner;
  };
  row.again = std::count_if(passes.begin(), passes.end(), goes_over) > 1;
  return row;
}

// Warps: one chunk each where a row is read again, or several in turn.
void share_row(const Kernel& kernel, const Longest& row, RowShape& shape) {
  const int asked = schedule_of(kernel).warps_per_row;
  const int64_t chunks = ceil_divide(row.count, kChunk);
  if (chunks == 1) return;
  const bool turns =
      !row.again && chunks > kFewWarps && row_count(kernel).constant() >= kManyRows;
  const int64_t rounds = ceil_divide(chunks, turns ? kTakingTurns : kMostWarps);
  shape.warps = asked > 0 ? asked : static_cast<int>(ceil_divide(chunks, rounds));
  shape.warps = std::max(shape.warps, 2);
}

// Rows of a block that a warp has each, or several short ones.
int64_t rows_side_by_side(const Kernel& kernel) {
  const int64_t asked = std::max(1, schedule_of(kernel).warps / 2),
                alternate = rows_that_alternate(kernel),
                all = ceil_divide(asked, alternate) * alternate;
  return alternate <= kMostWarps && all <= kBlockWarps ? all : asked;
}

// Threads with little to do each take several rows.
void take_turns(const Kernel& kernel, RowShape& shape) {
  const bool little =
      shape.warps == 1 && std::all_of(shape.spreads.begin(), shape.spreads.end(),
                                      [](const Spread& s) { return s.values() <= kLittle; });
  if (!little || row_count(kernel).constant() * shape.lanes < kManyThreads) return;
  shape.turns = kTurns;
  shape.block = kLargeBlock;
  shape.rows_a_block = shape.block / shape.lanes;
}

}  // namespace

RowShape row_shape_of(const CudaText& text, const std::vector<std::vector<int>>& passes) {
  const Kernel& kernel = text.kernel;
  const Longest row = longest_of(kernel, passes);
  const bool folds = folds_rows(kernel);
  RowShape shape;
  share_row(kernel, row, shape);
  const int64_t packs = power_of_two_from(row.count) / widest(text, row.inner, row.count);
  if (packs < 32 && shape.warps == 1 && !folds)
    shape.lanes = static_cast<int>(std::max<int64_t>(packs, 1));
  const int64_t warps = folds             ? fold_shape_of(kernel).warps
                        : shape.warps > 1 ? shape.warps
                                          : rows_side_by_side(kernel);
  shape.block = static_cast<int>(32 * warps);
  shape.rows_a_block = shape.warps > 1 ? 1 : shape.block / shape.lanes;
  if (folds) shape.turns = fold_shape_of(kernel).turns, shape.resident = kFolding;
  spread_rows(text, shape);
  if (!folds) take_turns(kernel, shape);
  return shape;
}

}  // namespace tiny_compile
