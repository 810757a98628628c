// While a machine has a thread for every element, time is what one thread does after the other:
//
//   sort p[j0] for (j0: 65536) = argsort load x[j0] in 2048                   rows each=4
//   sort q[j0] for (j0: 65536) = argsort load x[j0] in 4096 from load p[j0]   rows each=1
//
// Of more elements each thread takes more, so that fewer meet (a sort), and less is looked for (a merge). The figures
// are fitted to 15 sorts and two rows of merges by 1 to 16 elements a thread (H200, tests/bench/NOTES.md, "Sorts as
// tile programs"): what is chosen is within 3 % of the best of each.
#include "tiny_compile/schedule/sorted_rows.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/schedule/rates.h"

namespace tiny_compile {
namespace {

// Instructions of a thread for each of its words, of 32 bits: to compare it with another lane's, another warp's, its
// own; and to make it and store its place.
constexpr double kByLane = 4, kByWarp = 9.5, kOwn = 3.3, kMake = 32;
constexpr double kMeet = 500;    // clocks until the warps of a block have met
constexpr double kStart = 6000;  // clocks that nothing else hides
constexpr double kAlone = 1.5;   // clocks of an instruction of a lone warp
constexpr double kPiece = 3.4;   // lanes side by side that read and write as fast as all
constexpr double kSchedulers = 4, kLanesOfMultiprocessor = 128;
// Seconds of a merge: until a tile's ends are found; for each element of a thread, of a machine that is full, and at
// least.
constexpr double kCut = 2.6e-6, kMerged = 2.96e-6, kOneMerged = .8e-6;
constexpr int64_t kThreads = 2048;  // of a multiprocessor
// Of a CPU's thread: to make a word; for each digit.
constexpr double kWord = 20, kDigit = 8, kCoreClock = 3e9;

// How often the threads of a row meet, and its words are compared.
struct Barriers {
  int lanes = 0, warps = 0, own = 0;
};

Barriers barriers_of(const SortShape& shape) {
  constexpr int kBits = 5;  // of a lane
  const int of_own = log2_of(shape.own);
  Barriers m{0, 0, of_own * (of_own + 1) / 2 + of_own * shape.bits()};
  for (int bit = 0; bit < shape.bits(); bit++) {
    const int list = std::min(bit, shape.list_bits());
    m.lanes += bit < kBits ? 1 + list : std::min(kBits, list);
    m.warps += bit < kBits ? 0 : 1 + std::max(0, list - kBits);
  }
  return m;
}

double time_of_runs(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  const Machine& machine = program.machine;
  const Rates rates = rates_of(machine);
  const int64_t count = inner_count(kernel, step).constant(),
                run = sorted_run(kernel, step).constant(),
                first = std::min(first_places(kernel, step), run),
                all = row_count(kernel).constant() * ceil_divide(count, run);
  const SortShape shape(run, first, kernel.schedule->each);
  const Barriers m = barriers_of(shape);
  const double words =
                   word_bits(kernel.scalars[step.value].dtype, most_places(kernel, step)).words,
               each = m.lanes * (kByLane * words + 1) + m.warps * (kByWarp * words + 1) +
                      m.own * kOwn * words + kMake,
               warps = as_double(ceil_divide(all, shape.rows)) *
                       as_double(shape.rows * shape.threads) / as_double(kLanes),
               at_once = as_double(machine.multiprocessors) * kSchedulers,
               clocks = m.warps * kMeet + shape.own * each * std::max(kAlone, warps / at_once) +
                        kStart,
               clock = rates.instructions / as_double(machine.multiprocessors) /
                       kLanesOfMultiprocessor;
  const double bytes =
      as_double(bytes_moved(program, kernel)) *
      std::max(1.0, kPiece / as_double(std::min<int64_t>(shape.threads, kLanes)));
  return std::max(clocks / clock, bytes / rates.bytes);
}

double time_of_merges(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  const int each = kernel.schedule->each, threads = merging_threads(each);
  const int64_t count = inner_count(kernel, step).constant(),
                pair = std::min(step.limit.constant(), count),
                blocks = row_count(kernel).constant() * ceil_divide(count, pair) *
                         ceil_divide(pair, int64_t{each} * threads);
  const double waves = as_double(blocks) / as_double(program.machine.multiprocessors) /
                       as_double(kThreads / threads);
  return std::ceil(waves) * kCut + each * std::max(kOneMerged, kMerged * waves);
}

// By a thread each: it goes through the whole row, or run.
double time_of_ranks(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  const double elements = as_double((row_count(kernel) * inner_count(kernel, step)).constant());
  return elements * as_double(sorted_run(kernel, step).constant()) * kMake /
         rates_of(program.machine).instructions;
}

double time_on_cpu(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  const int64_t rows = row_count(kernel).constant(),
                count = inner_count(kernel, step).constant();
  const double digits = std::ceil(
      word_bits(kernel.scalars[step.value].dtype, most_places(kernel, step)).key / 8.0);
  return as_double(rows * count) * (kWord + kDigit * digits) / kCoreClock /
         as_double(std::clamp<int64_t>(rows, 1, program.machine.cores));
}

}  // namespace

std::optional<double> time_of_sort(const Program& program, const Kernel& kernel) {
  if (kernel.steps.empty() || kernel.steps[0].kind != StepKind::Sort) return std::nullopt;
  if (program.target == Target::Cpp) return time_on_cpu(program, kernel);
  if (!is_sorted_together(program, kernel)) return time_of_ranks(program, kernel);
  return kernel.steps[0].rhs >= 0 ? time_of_merges(program, kernel)
                                  : time_of_runs(program, kernel);
}

int each_sorted(const Program& program, const Kernel& kernel) {
  int best = Schedule{}.each;
  if (!is_sorted_together(program, kernel)) return best;
  Kernel tried = kernel;
  double least = 0;
  for (const int each : {4, 1, 2, 8, 16}) {
    tried.schedule = Schedule{.each = each};
    if (!why_illegal(program, tried).empty()) continue;
    const double time = *time_of_sort(program, tried);
    if (least == 0 || time < least) least = time, best = each;
  }
  return best;
}

}  // namespace tiny_compile
