// How is a scatter dealt out? Of a result that blocks own runs of, so that they fill the machine, and where every block
// reads the whole index, so that they do not read more of it than twice the result. Of rows that threads share, few
// threads that sort eight updates each where rows keep the machine busy; else twice as many:
//
//   scatter y[at0*768 + i0; ..] for (j0: 8192) of 50304       rows each=8 run=9216 resident=4
//   scatter y[i0*1000 + at0; ..] for (j0: 4096), 2048 rows    rows each=8 beside=1
//   the same of 64 rows                                       rows beside=1
//   scatter y[at0*1024 + i0; ..] for (j0: 2000), 1024 rows    rows each=8: neighbouring rows share what is read
#include "tiny_compile/schedule/scattered_rows.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/scatter_rules.h"

namespace tiny_compile {
namespace {

constexpr int kMany = 8, kFew = 4;                   // updates of a thread
constexpr int kThreads = 128;                        // of a block, at least
constexpr int64_t kMostBeside = 8;                   // rows whose elements are neighbours
constexpr int64_t kRegisters = 64;                   // of a thread that adds up a run
constexpr int64_t kLeastRun = 128, kMostRun = 4096;  // packs, of updates in order
constexpr int64_t kIndexBytes = 8, kWarp = 32;

// Packs of a block: whole targets, or a part of one that warps go over.
int64_t in_units(const RunShape& shape, int64_t run) {
  const int64_t unit = run < shape.packs ? std::min<int64_t>(kWarp, shape.packs) : shape.packs;
  return std::min(ceil_divide(run, unit) * unit, (kMostTargetsOfBlock - 1) * shape.packs);
}

Schedule in_runs(const Program& program, const Kernel& kernel, Schedule schedule) {
  const Machine& machine = program.machine;
  Kernel tried = kernel;
  schedule.each = kMany;
  tried.schedule = schedule;
  const RunShape shape(program, tried);
  const int64_t held = blocks_held(machine, RunShape::threads, kRegisters),
                fewest = machine.multiprocessors, most = fewest * held, points = shape.points();
  schedule.resident = static_cast<int>(held);
  if (shape.is_ordered) {
    schedule.run = in_units(shape, std::clamp(points / most, kLeastRun, kMostRun));
    return schedule;
  }
  const int64_t bytes = points * shape.vector * size_of(kernel.steps[1].dtype),
                blocks = std::clamp(2 * bytes / (shape.updates * kIndexBytes), fewest, most);
  schedule.run = in_units(shape, ceil_divide(points, blocks));
  return schedule;
}

}  // namespace

Schedule scattered_rows(const Program& program, const Kernel& kernel, Schedule schedule) {
  const ScatterBy by = scatters_by(program, kernel);
  if (by != ScatterBy::Thread) schedule.strategy = Strategy::Rows;
  if (by == ScatterBy::Runs) return in_runs(program, kernel, schedule);
  if (by != ScatterBy::Chunks) return schedule;
  Kernel tried = kernel;
  tried.schedule = schedule;
  const int64_t rows = row_count(kernel).constant();
  schedule.beside = tried.schedule->beside = 1;
  schedule.each = tried.schedule->each = kMany;
  if (rows * ScatterShape(tried).threads < threads_to_fill(program.machine) / 2)
    schedule.each = tried.schedule->each = kFew;
  const ScatterShape shape(tried);
  int64_t most = std::max(kThreads / shape.threads, 1);
  if (scatters_across(kernel))  // as long as there are blocks for the machine
    most = std::max(most, std::min(kMostBeside, 2 * rows / program.machine.multiprocessors));
  for (int beside = 2; beside <= most && beside <= rows; beside *= 2) {
    tried.schedule->beside = beside;
    if (why_illegal(program, tried).empty()) schedule.beside = beside;
  }
  return schedule;
}

}  // namespace tiny_compile
