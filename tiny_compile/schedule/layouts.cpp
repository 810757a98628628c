// Which of the legal layouts is a good one? Each gives the same bits, so this is advice alone.
//
//   sum over the first of [1024,4096]        rows grid · lane 32
//                                            loop register 32 · serial 2 · warp 16
//   softmax over the second of [64,128,512]  rows grid · warp 2 from 4 · lane 32
//                                            loop register 32 · warp 4
//   variance of the first of [1024,4096]     rows grid · lane 4 · vector 4
//                                            loop register 8 · warp 16 · lane 8 from 4
//
// A column that is read again is read into registers: all of it, by as many threads as that takes.
// A warp reads 128 neighbouring bytes where up to 16 warps then hold the columns; longer ones are
// held by lanes as well, and a warp reads 64 bytes of each row of memory. (Softmax of 512 rows: .084 ms and
// .093, of 1000: .131 and .120, of 196: .086 and .099; H200, 2026-11-24.) One that is read once is read
// in turns.
#include "tiny_compile/schedule/layouts.h"

#include <algorithm>
#include <cstdlib>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/legal_layouts.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLanes = 32;
constexpr int64_t kInFlight = 32;   // elements of a thread at a time
constexpr int64_t kBlockWarps = 8;  // where there is work for them
constexpr int64_t kMostWarps = 16;  // that share a column which is read once
constexpr int64_t kAccess = 16;     // bytes
constexpr int64_t kWord = 4;        // bytes that a lane reads, where all are of the rows
constexpr int64_t kPiece = 64;      // bytes of neighbours that a warp reads, where they are not
constexpr int64_t kManyThreads = int64_t{1} << 17;  // from here on all multiprocessors are busy
constexpr int64_t kResidentWarps = 32;  // of a multiprocessor: 64 registers a thread

int64_t longest_loop(const Kernel& kernel) {
  int64_t longest = 1;
  for (const Step& step : kernel.steps)
    longest = std::max(longest, elements_of(kernel, step.inner));
  return longest;
}

// Whether elements are wanted again when all of them have been read.
bool reads_again(const Kernel& kernel) {
  int passes = 0;
  bool exponentials = false;
  for (const Step& step : kernel.steps) {
    passes += !step.inner.empty();
    exponentials = exponentials || step.op == Op::sum_exp;
  }
  return passes > 1 || exponentials;
}

// What lies along the last row axis: elements that one access can have of all of it, and the bytes
// of its largest.
struct Along {
  int64_t vector = 1, bytes = 4;
};

Along along_rows(const Program& program, const Kernel& kernel) {
  const Axis& last = kernel.axes[kernel.rows - 1];
  int64_t width = 8, largest = 1;
  const auto see = [&](const Expr& index, int b) {
    const Buffer& buffer = program.buffers[b];
    if (!is_contiguous(index, last.symbol(), 1)) return;
    if (buffer.align < kAccess) width = 1;
    while (width > 1 && !is_contiguous(index, last.symbol(), static_cast<int>(width)))
      width /= 2;
    largest = std::max(largest, size_of(buffer.type.dtype));
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) see(scalar.index, scalar.buffer);
  }
  for (const Step& step : kernel.steps) {
    if (!makes_register(step)) see(step.index, step.buffer);
  }
  while (width > 1 && last.extent.constant() % width != 0) width /= 2;
  return {std::min(width, kAccess / largest), largest};
}

// Something is read or written along the loops, not along the rows: its elements lie across lanes.
bool runs_along_loops(const Kernel& kernel) {
  const auto step_along = [&](const Expr& index, int axis) {
    return std::abs(coefficient(index, kernel.axes[axis].symbol()));
  };
  const auto runs = [&](const Expr& index) {
    const int64_t beside = step_along(index, kernel.rows - 1);
    for (int a = kernel.rows; a < static_cast<int>(kernel.axes.size()); a++) {
      const int64_t step = step_along(index, a);
      if (step > 0 && step < beside) return true;
    }
    return false;
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load && runs(scalar.index)) return true;
  }
  return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    return step.kind == StepKind::Store && runs(step.index);
  });
}

// A part, where it is more than nothing.
void add(Layout& layout, Level level, int64_t extent, int64_t step = 1) {
  if (extent > 1) layout.push_back({level, extent, step});
}

struct Columns {
  int64_t lanes = 32;  // of the rows; the others share columns
  int64_t vector = 1;  // of the rows
  int64_t registers = 1;
  int64_t warps = 1;  // of a column
  int64_t at_once() const { return registers * (kLanes / lanes) * warps; }
};

Layout loop_of(const Columns& c, int64_t count) {
  int64_t rest = power_of_two_from(count);
  const auto deal = [&](int64_t most) {
    const int64_t part = std::min(most, rest);
    rest /= part;
    return part;
  };
  const int64_t lanes = deal(kLanes / c.lanes), warps = deal(c.warps),
                registers = deal(c.registers);
  Layout layout;
  add(layout, Level::Register, registers);
  add(layout, Level::Serial, rest);
  add(layout, Level::Warp, warps);
  add(layout, Level::Lane, lanes, c.lanes);
  return layout;
}

// All of a column in registers, by `lanes` that have vectors of its neighbours.
Columns held_by(int64_t lanes, int64_t vector, int64_t rows, int64_t count) {
  Columns c;
  c.vector = vector;
  c.lanes = std::min(lanes, power_of_two_from(rows));
  c.registers = std::max<int64_t>(1, kInFlight / c.vector);
  while (c.at_once() < power_of_two_from(count)) c.warps *= 2;
  return c;
}

Columns in_registers(const Along& along, int64_t rows, int64_t count) {
  const int64_t word = std::min(along.vector, std::max<int64_t>(1, kWord / along.bytes));
  const Columns c = held_by(kLanes, word, rows, count);
  if (c.warps <= kMostWarps) return c;
  const int64_t lanes = std::max<int64_t>(1, kPiece / (along.vector * along.bytes));
  return held_by(std::min(kLanes, lanes), along.vector, rows, count);
}

// In turns, a piece of each of some rows of memory at a time.
Columns in_turns(Along along, int64_t rows, int64_t count) {
  const int64_t padded = power_of_two_from(count);
  while (along.vector > 1 && rows / along.vector * std::min(kMostWarps, padded) < kManyThreads)
    along.vector /= 2;
  Columns c;
  c.vector = along.vector;
  c.lanes = std::min(kLanes, power_of_two_from(rows));
  c.registers = std::max<int64_t>(1, kInFlight / c.vector);
  while (c.warps < kMostWarps && c.at_once() < padded) c.warps *= 2;
  return c;
}

}  // namespace

std::optional<Schedule> layouts_of_columns(const Program& program, const Kernel& kernel) {
  if (!can_be_laid_out(program, kernel) || longest_loop(kernel) > 2 * kChunk ||
      runs_along_loops(kernel))
    return std::nullopt;
  const int64_t rows = row_count(kernel).constant(), count = longest_loop(kernel);
  const Along along = along_rows(program, kernel);
  const bool again = reads_again(kernel);
  const Columns c = again ? in_registers(along, rows, count) : in_turns(along, rows, count);
  Schedule schedule = default_schedule(program.machine);
  schedule.strategy = Strategy::Layouts;
  schedule.rows.push_back({Level::Grid});
  const int64_t beside = std::min(std::max<int64_t>(1, kBlockWarps / c.warps),
                                  power_of_two_from(ceil_divide(rows, c.lanes * c.vector)));
  add(schedule.rows, Level::Warp, beside, c.warps);
  add(schedule.rows, Level::Lane, c.lanes);
  add(schedule.rows, Level::Vector, c.vector);
  for (const std::vector<int>& inner : loops_of(kernel))
    schedule.loops.push_back(loop_of(c, elements_of(kernel, inner)));
  Kernel chosen = kernel;
  if (again && c.lanes < kLanes)
    schedule.resident = std::max(1, static_cast<int>(kResidentWarps) / warps_of(schedule));
  chosen.schedule = schedule;
  if (!why_illegal_layouts(program, chosen).empty()) return std::nullopt;
  return schedule;
}

}  // namespace tiny_compile
