// How is a scatter dealt out? Of a result that blocks own runs of, so that they fill the machine, and where every block
// reads the whole index, so that they do not read more of it than twice the result. Of rows that threads share, few
// threads that sort eight updates each where rows keep the machine busy; else twice as many:
//
//   scatter y[at0*768 + i0; ..] for (j0: 8192) of 50304       rows each=8 run=9216 resident=4
//   scatter y[i0*1000 + at0; ..] for (j0: 4096), 2048 rows    rows each=8 beside=1
//   the same of 64 rows                                       rows beside=1
//   scatter y[at0*1024 + i0; ..] for (j0: 2000), 1024 rows    rows each=8: neighbouring rows share what is read
//
// What it costs is fitted to eight scatters under three to eight schedules each (H200, tests/bench/NOTES.md, "What a
// scatter costs").
#include "tiny_compile/schedule/scattered_rows.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/schedule/rates.h"

namespace tiny_compile {
namespace {

constexpr int kMany = 8, kFew = 4;                   // updates of a thread
constexpr int kThreads = 128;                        // of a block, at least
constexpr int64_t kMostBeside = 8;                   // rows whose elements are neighbours
constexpr int64_t kRegisters = 64;                   // of a thread that adds up a run
constexpr int64_t kLeastRun = 128, kMostRun = 4096;  // packs, of updates in order
constexpr int64_t kIndexBytes = 8, kWarp = 32;
constexpr int64_t kSearched = 2048;  // updates that a block looks at together

// Seconds. A block of a run: until it begins and ends; an update in its list; on a multiprocessor each block's
// kSearched updates.
constexpr double kRun = 2.5e-6, kListed = 41e-9, kSearch = .37e-6;
// Of memory's rate r / (r + 1), r this of the words that all threads ask for over those that keep it busy.
constexpr double kAsked = 4.4;
// A chunk's updates, in order: for each of a thread's, and for each thread.
constexpr double kOwnSorted = .5e-6, kMet = 3.9e-9;
constexpr double kSorted = 300,
                 kCounted = 55;    // instructions: of an update in a chunk, in a table
constexpr double kChain = 1.5e-6;  // of an update that a thread makes alone

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
  schedule.each = shape.of_pack();
  schedule.resident = static_cast<int>(held);
  if (shape.is_ordered) {
    schedule.run = in_units(shape, std::clamp(points / most, kLeastRun, kMostRun));
    return schedule;
  }
  const int64_t bytes = points * shape.of_pack() * size_of(kernel.steps[1].dtype),
                blocks = std::clamp(2 * bytes / (shape.updates * kIndexBytes), fewest, most);
  schedule.run = in_units(shape, ceil_divide(points, blocks));
  return schedule;
}

double waits_of_runs(const Program& program, const Kernel& kernel) {
  const RunShape shape(program, kernel);
  const Machine& machine = program.machine;
  const Rates rates = rates_of(machine);
  const int resident = kernel.schedule->resident;
  const int64_t held =
      resident > 0 ? resident : blocks_held(machine, RunShape::threads, kRegisters);
  const double blocks = as_double(ceil_divide(shape.points(), shape.run)),
               of_each = blocks / as_double(machine.multiprocessors),
               at_once = std::min(of_each, as_double(held)),
               waves = std::max(1.0, of_each / as_double(held)),
               words = as_double(shape.of_pack() * size_of(kernel.steps[1].dtype)) / 4,
               busy = rates.bytes * rates.latency / 4 / as_double(machine.multiprocessors),
               asked = kAsked * at_once * RunShape::threads * words / busy,
               bytes = as_double(bytes_moved(program, kernel)) / rates.bytes;
  double waits = waves * kRun + bytes / asked;
  if (shape.is_ordered) return waits;
  const double listed = as_double(shape.updates) / blocks,
               searches = as_double(ceil_divide(shape.updates, kSearched));
  waits += waves * listed * kListed + std::max(1.0, of_each) * searches * kSearch;
  return waits;
}

// Of all steps, one after the other.
double waits_of_chunks(const Program& program, const Kernel& kernel) {
  const ScatterShape shape(kernel);
  const Machine& machine = program.machine;
  const int64_t rows = row_count(kernel).constant(),
                held = std::max<int64_t>(machine.threads / shape.threads, 1);
  const double waves =
                   std::max(1.0, as_double(rows) / as_double(machine.multiprocessors * held)),
               part = std::log2(shape.chunk()) / std::log2(kChunk),
               chunk = (kOwnSorted * shape.own + kMet * shape.threads) * part * part;
  double waits = 0;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Scatter) continue;
    const int64_t updates = inner_count(kernel, step).constant();
    waits += waves * as_double(ceil_divide(updates, int64_t{shape.chunk()})) * chunk +
             as_double(rows * updates) * kSorted * part * part / rates_of(machine).instructions;
  }
  return waits;
}

// Of a row.
double updates_of(const Kernel& kernel) {
  double updates = 0;
  for (const Step& step : kernel.steps)
    if (step.kind == StepKind::Scatter)
      updates += as_double(inner_count(kernel, step).constant());
  return updates;
}

}  // namespace

std::optional<double> waits_of_scatter(const Program& program, const Kernel& kernel) {
  const double updates = updates_of(kernel);
  if (program.target != Target::Cuda || updates == 0) return std::nullopt;
  const double rows = as_double(row_count(kernel).constant());
  switch (scatters_by(program, kernel)) {
    case ScatterBy::Runs: return waits_of_runs(program, kernel);
    case ScatterBy::Chunks: return waits_of_chunks(program, kernel);
    case ScatterBy::Tables:
      return rows * updates * kCounted / rates_of(program.machine).instructions;
    case ScatterBy::Thread: break;
  }
  return updates * kChain * std::max(1.0, rows / as_double(threads_to_fill(program.machine)));
}

std::string who_scatters(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || updates_of(kernel) == 0) return "";
  const int64_t rows = row_count(kernel).constant();
  const auto blocks = [](int64_t count) {
    return str(count, count == 1 ? " block" : " blocks");
  };
  switch (scatters_by(program, kernel)) {
    case ScatterBy::Runs: {
      const RunShape shape(program, kernel);
      return str(blocks(ceil_divide(shape.points(), shape.run)), ", each with ", shape.run,
                 " packs of ", shape.of_pack(),
                 shape.apart > 1 ? " columns, apart from each other," : " neighbours",
                 " of the result; each finds ",
                 shape.is_ordered ? "where its own begin among " : "its own among ",
                 shape.updates, " updates",
                 shape.is_ordered ? " that are in the order of their places" : "");
    }
    case ScatterBy::Tables:
      return str(blocks(rows), ", each with a row and its ", kernel.steps[1].limit,
                 " sums in shared memory");
    case ScatterBy::Chunks: {
      const ScatterShape shape(kernel);
      return str(blocks(ceil_divide(rows, int64_t{shape.rows})), ", with ",
                 std::min<int64_t>(shape.rows, rows), " of ", rows, " rows each; ",
                 shape.threads,
                 shape.threads == 1 ? " thread of a row sorts " : " threads of a row sort ",
                 shape.chunk(), " updates by place at a time, ", shape.own,
                 " each, and who has the first of a place adds all of it");
    }
    case ScatterBy::Thread: break;
  }
  return str("each of ", rows, " rows a thread's");
}

Schedule scattered_rows(const Program& program, const Kernel& kernel, Schedule schedule) {
  const ScatterBy by = scatters_by(program, kernel);
  if (by != ScatterBy::Thread) schedule.strategy = Strategy::Rows;
  if (by == ScatterBy::Runs) return in_runs(program, kernel, schedule);
  if (by != ScatterBy::Chunks) return schedule;
  Kernel tried = kernel;
  tried.schedule = schedule;
  const int64_t rows = row_count(kernel).constant();
  tried.schedule->beside = 1;
  tried.schedule->each = kMany;
  if (rows * ScatterShape(tried).threads < threads_to_fill(program.machine) / 2)
    tried.schedule->each = kFew;
  const ScatterShape shape(tried);
  schedule.each = tried.schedule->each = shape.own;
  schedule.beside = shape.fewest_rows();
  int64_t most = std::max(kThreads / shape.threads, 1);
  if (scatters_across(kernel))  // as long as there are blocks for the machine
    most = std::max(most, std::min(kMostBeside, 2 * rows / program.machine.multiprocessors));
  for (int beside = 2 * schedule.beside; beside <= most && beside <= rows; beside *= 2) {
    tried.schedule->beside = beside;
    if (why_illegal(program, tried).empty()) schedule.beside = beside;
  }
  return schedule;
}

}  // namespace tiny_compile
