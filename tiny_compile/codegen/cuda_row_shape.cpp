// Who reduces which part of a row? One warp takes a chunk of 1024 in registers; short rows
// share a warp, long ones take a block, very long ones several:
//
//   rows of 7       8 lanes a row, 4 rows a warp, four times
//   rows of 1000    a warp a row, 32 values a lane; very many rows: two warps each, and they come
//                   and go sooner
//   rows of 4096    a block of 4 warps, a chunk each; results meet in shared memory
//   rows of 50257   read by several steps: a cluster of 8 blocks of 7 warps, a chunk each
//                   read once (a sum): a block of 4 warps, 13 chunks each: small blocks, so
//                   that some read while others compute
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
constexpr int kFewWarps = 8;            // of a block in a cluster
constexpr int kTakingTurns = 4;         // of a block that reads its row once
constexpr int64_t kManyRows = 1 << 11;  // from here on these fill a GPU
// Blocks whose threads have this few values end sooner than the next one is launched: each takes
// several rows, and the loads of all before the first one's arithmetic.
constexpr int64_t kLittle = 4;
constexpr int64_t kManyThreads = 1 << 20;
constexpr int64_t kTurns = 4;
constexpr int kLargeBlock = 256;
// Blocks of a cluster on a multiprocessor, to wait in turns. By one divisor for all of a thread's
// values (tc_quotient) the fifth block's registers are missed.
constexpr int kWaiting = 5, kWaitingDivided = 4;
constexpr int64_t kOtherRegisters = 40;  // of a thread, beside what it keeps
constexpr int kFolding = 3;              // blocks that fold: 168 registers a thread
// Warps that share a chunk: each reads about 2 kB. By 1, 2, 4, 8 warps, layernorm of 4 kB takes 0.136,
// 0.133, 0.132, 0.263 ms, and of rows of 8 kB with gaps 0.106, 0.103, 0.099, 0.150.
constexpr int64_t kReadBytes = 2048;
// Measured with 65536 rows and more. gpt2_fwd, whose 24 layer norms have 8192 rows of 768, took 8.15 ms
// in the one run in which they were shared, 8.02 and 8.05 in others.
constexpr int64_t kManySharedRows = 1 << 15;
constexpr int kMostSharing = 4;
constexpr int64_t kLeastValues = 8, kLeastPacks = 2;  // that are left of it for a thread
constexpr int64_t kExchanged = 8192;                  // bytes of a block at most

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
  s.vector = std::min(widest(text, inner, s.count), shape.most_vector);
  while (s.vector > 1 && s.vector * shape.lanes > power_of_two_from(s.count)) s.vector /= 2;
  s.chunks = ceil_divide(s.count, kChunk);
  s.rounds = ceil_divide(s.chunks, shape.readers() * shape.cluster);
  const int64_t size = s.chunks > 1 ? kChunk : power_of_two_from(s.count);
  s.packs = std::max<int64_t>(1, size / (shape.lanes * s.vector * shape.sharing));
  s.size = s.chunks > 1 ? kChunk : shape.lanes * shape.sharing * s.values();
  return s;
}

}  // namespace

const Spread& RowShape::over(const std::vector<int>& inner) const {
  const auto found = std::find_if(spreads.begin(), spreads.end(),
                                  [&](const Spread& s) { return s.inner == inner; });
  CHECK(found != spreads.end(), "no spread for these loops");
  return *found;
}

bool exchanges_words(const Kernel& kernel) {
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store) continue;
    if (is_arg(step)) return false;
    if (size_of(accumulator(step.op, kernel.scalars[step.value].dtype)) < 4) return false;
  }
  return true;
}

void spread_rows(const CudaText& text, RowShape& shape) {
  shape.spreads.clear();
  for (const Step& step : text.kernel.steps) {
    const bool known = std::any_of(shape.spreads.begin(), shape.spreads.end(),
                                   [&](const Spread& s) { return s.inner == step.inner; });
    if (!known) shape.spreads.push_back(spread_of(text, shape, step.inner));
  }
}

namespace {

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

// Warps, and blocks of a cluster: one chunk each where a row is read again, or several in turn.
void share_row(const Kernel& kernel, const Longest& row, RowShape& shape) {
  const Schedule schedule = schedule_of(kernel);
  const int64_t chunks = ceil_divide(row.count, kChunk);
  while (row.again && exchanges_words(kernel) && 2 * shape.cluster <= schedule.cluster &&
         chunks > kFewWarps * shape.cluster)
    shape.cluster *= 2;
  if (chunks > kMostWarps * shape.cluster) shape.cluster = 1;
  const bool turns =
      !row.again && chunks > kFewWarps && row_count(kernel).constant() >= kManyRows;
  const int64_t most = turns ? kTakingTurns : kMostWarps;
  const int64_t rounds = ceil_divide(chunks, most * shape.cluster);
  const bool asked = schedule.warps_per_row > 0 && chunks > 1;  // of one: share_chunk
  shape.warps = asked ? schedule.warps_per_row
                      : static_cast<int>(ceil_divide(chunks, rounds * shape.cluster));
  if (chunks > 1) shape.warps = std::max(shape.warps, 2);
  if (chunks > shape.warps * shape.cluster) shape.cluster = 1;  // there a warp takes one chunk
}

// Rows of a block that a warp has each, or several short ones.
int64_t rows_side_by_side(const Kernel& kernel) {
  const int64_t asked = std::max(1, schedule_of(kernel).warps / 2),
                alternate = rows_that_alternate(kernel),
                all = ceil_divide(asked, alternate) * alternate;
  return alternate <= kMostWarps && all <= kBlockWarps ? all : asked;
}

bool divides(const Kernel& kernel) {
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(),
                     [](const Scalar& s) { return s.op == Op::div; });
}

// Blocks of a cluster on a multiprocessor. Where threads keep several values of an element, as many
// as have registers for them: what is spilled costs more than a block that waits is worth.
int waiting_blocks(const CudaText& text, int block) {
  const int most = divides(text.kernel) ? kWaitingDivided : kWaiting;
  const Held held = most_held(text.kernel);
  if (held.values < 2) return most;
  const int64_t registers = block * (kOtherRegisters + held.bytes * (kChunk / 32) / 4);
  return static_cast<int>(
      std::clamp<int64_t>(text.program.machine.registers / registers, 1, most));
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

// Bytes between the first and the last that a row has of its own.
int64_t row_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Scalar& s : kernel.scalars) {
    if (s.kind != ScalarKind::Load || !depends_on_rows(kernel, s.index)) continue;
    for (auto axis = kernel.axes.begin() + kernel.rows; axis != kernel.axes.end(); ++axis)
      bytes +=
          coefficient(s.index, axis->symbol()) * axis->extent.constant() * size_of(s.dtype);
  }
  return bytes;
}

// As many as the schedule asks for, or as a row's bytes want; as few as leave each enough.
int sharing_of(const CudaText& text, const RowShape& shape) {
  const Kernel& kernel = text.kernel;
  const int asked = schedule_of(kernel).warps_per_row;
  const bool warp_a_row = shape.warps * shape.cluster * shape.turns == 1 && shape.lanes == 32;
  if (!warp_a_row || folds_rows(kernel) || rows_that_alternate(kernel) > 1) return 1;
  if (asked == 0 && row_count(kernel).constant() < kManySharedRows) return 1;
  const int64_t bytes = row_bytes(kernel);
  const auto wants_more = [&](int sharing) {
    return asked > 0 ? 2 * sharing <= asked : bytes > kReadBytes * sharing;
  };
  int sharing = 1;
  while (sharing < kMostSharing && wants_more(sharing)) sharing *= 2;
  int64_t exchanged = 0;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store) continue;
    const Spread& s = shape.over(step.inner);
    if (is_arg(step) || step.op == Op::sum_exp || s.chunks > 1) return 1;
    const int64_t most = std::min(s.values() / kLeastValues, s.packs / kLeastPacks);
    while (sharing > most) sharing /= 2;
    if (sharing == 0) return 1;
    const DType type = accumulator(step.op, kernel.scalars[step.value].dtype);
    exchanged += 32 * sharing * s.vector * size_of(type);
  }
  return exchanged == 0 || exchanged > kExchanged ? 1 : sharing;
}

}  // namespace

void share_chunk(const CudaText& text, RowShape& shape) {
  const int sharing = sharing_of(text, shape);
  if (sharing == 1) return;
  shape.warps = shape.sharing = sharing;
  shape.block = 32 * sharing;
  shape.rows_a_block = 1;
  spread_rows(text, shape);
}

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
  if (shape.cluster > 1) shape.resident = waiting_blocks(text, shape.block);
  spread_rows(text, shape);
  if (!folds) take_turns(kernel, shape);
  return shape;
}

}  // namespace tiny_compile
