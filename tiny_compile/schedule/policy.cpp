// How should each kernel run? A first answer from its shape alone; no measurement, no state.
//
//   exp over 4096x1024              => pointwise, one axis of 4194304 points
//   softmax over the last axis      => rows, values kept between steps
//   a sum over the first axis       => columns: lanes are neighbouring columns
//   a sum of everything             => two kernels (split.h)
#include "tiny_compile/schedule/policy.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/counted.h"
#include "tiny_compile/loops/divided_rows.h"
#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/loops/eighths.h"
#include "tiny_compile/loops/group_launches.h"
#include "tiny_compile/loops/join_parts.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/order_updates.h"
#include "tiny_compile/loops/part_scans.h"
#include "tiny_compile/loops/part_sweeps.h"
#include "tiny_compile/loops/scan_shape.h"
#include "tiny_compile/loops/short_sums.h"
#include "tiny_compile/loops/shorten_sorts.h"
#include "tiny_compile/loops/single_rows.h"
#include "tiny_compile/loops/split.h"
#include "tiny_compile/loops/split_dot.h"
#include "tiny_compile/loops/split_scan.h"
#include "tiny_compile/loops/split_scatter.h"
#include "tiny_compile/loops/split_sort.h"
#include "tiny_compile/loops/streamed_stores.h"
#include "tiny_compile/loops/strips.h"
#include "tiny_compile/loops/transposed_loads.h"
#include "tiny_compile/schedule/layouts.h"
#include "tiny_compile/schedule/panel_tiles.h"
#include "tiny_compile/schedule/points.h"
#include "tiny_compile/schedule/product_tiles.h"
#include "tiny_compile/schedule/scanned_rows.h"
#include "tiny_compile/schedule/scattered_rows.h"
#include "tiny_compile/schedule/sized_layouts.h"
#include "tiny_compile/schedule/sorted_rows.h"
#include "tiny_compile/schedule/transposed.h"

namespace tiny_compile {
namespace {

constexpr int64_t kNear = 8;           // elements that a line of memory holds, at least
constexpr int64_t kFewResults = 8;     // of a batch: not worth packing for
constexpr int64_t kPiecesOfCore = 16;  // as runtime/work_stealing hands out
constexpr int64_t kLeastStrip = 256;   // lanes: shorter stretches of memory are slow
constexpr int64_t kShortLoop = 16;     // elements: less than a vector or two

// Of a size without a bound, more than any machine has, which sums and products can hold.
int64_t at_most(const Expr& count) { return std::min(count.bounds().high, int64_t{1} << 40); }

// Bytes that leave nothing else in the caches.
int64_t large_bytes(const Machine& machine) {
  return std::max(machine.l3, machine.cores * near_bytes(machine)) / 2;
}

// How far apart in memory neighbours along an axis are, but where a quotient goes on: 1 of
// (j/512)*294912 + j%512.
int64_t usual_step(const Expr& index, const Expr& axis) {
  int64_t step = 0;
  for (const Term& term : terms(index)) {
    const bool starts_again = term.factor.kind() == ExprKind::Mod;
    step += term.coefficient *
            (starts_again ? usual_step(term.factor.operands()[0], axis) : term.factor == axis);
  }
  return step;
}

// Elements that an access reaches: of its axes, all pairs.
double elements_of(const Kernel& kernel, const Expr& index) {
  double elements = 1;
  for (const Axis& axis : kernel.axes) {
    if (depends_on(index, axis.name)) elements *= static_cast<double>(at_most(axis.extent));
  }
  return elements;
}

// Of most of what is accessed, neighbouring columns lie closer together than neighbouring elements of one. What all
// rows share, a value an element, lies in a cache either way. (H200, ms: a sum of bf16[256,4096] times bf16[256,4096,128]
// over 4096, of which the factor that is 128 times smaller lies the other way, row by row .556, in columns .066.)
bool prefers_columns(const Kernel& kernel) {
  double across = 0, along = 0;
  const Axis& lane = kernel.axes[kernel.rows - 1];
  auto count = [&](const Expr& index) {
    if (!depends_on_rows(kernel, index)) return;
    int64_t inner = INT64_MAX, beside = std::abs(coefficient(index, lane.symbol()));
    for (size_t a = static_cast<size_t>(kernel.rows); a < kernel.axes.size(); a++) {
      const int64_t step = std::abs(usual_step(index, kernel.axes[a].symbol()));
      if (step > 0) inner = std::min(inner, step);
    }
    const double elements = elements_of(kernel, index);
    if (inner < beside || (beside == 0 && inner < INT64_MAX)) along += elements;
    if (beside > 0 && beside < inner && beside <= kNear && terms(index).size() > 1)
      across += elements;
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) count(scalar.index);
  }
  for (const Step& step : kernel.steps) {
    if (!makes_register(step) && !step.inner.empty()) count(step.index);
  }
  return across > along;
}

// Loops too short for vectors of their own, of rows that overlap or lie between each other, as
// windows do: neighbouring rows are nearer than they are long.
bool has_short_windows(const Kernel& kernel) {
  int64_t longest = 1;
  for (const Step& step : kernel.steps)
    longest = std::max(longest, inner_count(kernel, step).bounds().high);
  const Expr lane = kernel.axes[kernel.rows - 1].symbol();
  return longest > 1 && longest <= kShortLoop &&
         std::all_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const Scalar& scalar) {
           return scalar.kind != ScalarKind::Load ||
                  std::abs(coefficient(scalar.index, lane)) < longest;
         });
}

// A tile needs a few results of a batch to share what it packs.
bool is_tiled_dot(const Program& program, const Kernel& kernel) {
  if (!can_be_tiled(program, kernel)) return false;
  if (program.target == Target::Cuda) return true;
  const DotAxes axes = dot_axes(kernel);
  const Expr results = count_of(kernel, axes.rows) * count_of(kernel, axes.columns);
  return results.bounds().high >= kFewResults;
}

int64_t work_per_row(const Kernel& kernel) {
  int64_t work = 1;
  for (const Step& step : kernel.steps) work += at_most(inner_count(kernel, step));
  return work * static_cast<int64_t>(1 + kernel.scalars.size() / 4);
}

// Lanes such that the strip of columns that all steps read again stays in half of L2, and each core has
// pieces enough that others can take some of them.
int columns_lanes(const Machine& machine, const Kernel& kernel) {
  int64_t longest = 1, loops = 0;
  for (const Step& step : kernel.steps) {
    const int64_t count = at_most(inner_count(kernel, step));
    longest = std::max(longest, count);
    loops += count > 1;
  }
  int64_t lanes = kChunk;
  while (loops > 1 && lanes > 16 && lanes * longest * 4 > machine.l2 / 2) lanes /= 2;
  while (lanes > 16 && lanes / 2 >= kernel.axes[kernel.rows - 1].extent.bounds().high)
    lanes /= 2;
  const int64_t pieces = kPiecesOfCore * machine.cores;
  while (lanes > kLeastStrip && at_most(row_count(kernel)) * 4 / lanes < pieces) lanes /= 2;
  const int64_t chunks = ceil_divide(longest, kChunk);
  while (lanes > 16 && chunks * lanes > (1 << 16)) lanes /= 2;
  const StripBytes arrays = strip_bytes(kernel);
  while (lanes > kLeastLanes && arrays.of(lanes) > machine.l2) lanes /= 2;
  return static_cast<int>(lanes);
}

// Outputs too large for a cache, whatever their sizes, that nobody in the program reads again.
bool writes_large_outputs(const Program& program, const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Store) continue;
    const Buffer& buffer = program.buffers[step.buffer];
    if (buffer.role != Role::Output) return false;
    for (const Kernel& other : program.kernels)
      if (buffers_read(program, other)[step.buffer]) return false;
    bytes += buffer.size.bounds().low * size_of(buffer.type.dtype);
  }
  return bytes >= large_bytes(program.machine);
}

// Goes once over more than the caches hold. Eighths of a chunk are eight streams of memory, which
// the caches do not foresee as they do one.
bool reads_much_once(const Program& program, const Kernel& kernel) {
  int passes = 0;
  bool is_known = row_count(kernel).is_constant();
  for (const Step& step : kernel.steps) {
    passes += !step.inner.empty();
    is_known = is_known && inner_count(kernel, step).is_constant();
  }
  return is_known && passes == 1 &&
         bytes_moved(program, kernel) >= large_bytes(program.machine);
}

Strategy choose_strategy(const Program& program, const Kernel& kernel) {
  if (is_tiled_dot(program, kernel)) return Strategy::Tiles;
  if (!is_sequential(kernel) && kernel.rows > 0) return Strategy::Pointwise;
  if (!can_go_in_columns(program, kernel)) return Strategy::Rows;
  const bool windows = program.target == Target::Cpp && has_short_windows(kernel);
  return windows || prefers_columns(kernel) ? Strategy::Columns : Strategy::Rows;
}

Schedule choose(const Program& program, const Kernel& kernel) {
  if (can_be_called(program, kernel)) return {.strategy = Strategy::Library};
  if (program.target == Target::Cuda && scans_in_groups(program, kernel))
    return scanned_rows(program, kernel);
  Schedule schedule{.strategy = choose_strategy(program, kernel)};
  const bool in_columns = schedule.strategy == Strategy::Columns;
  if (const auto layouts = layouts_of(program, kernel, in_columns)) return *layouts;
  if (schedule.strategy == Strategy::Tiles)
    return program.target == Target::Cpp ? panel_tiles(program, kernel)
                                         : product_tiles(program, kernel);
  schedule.each = each_sorted(program, kernel);
  if (program.target == Target::Cuda) return scattered_rows(program, kernel, schedule);
  int64_t unit = work_per_row(kernel);
  if (schedule.strategy == Strategy::Columns) {
    schedule.lanes = columns_lanes(program.machine, kernel);
    unit *= columns_unit(schedule);
  }
  if (schedule.strategy == Strategy::Rows)
    schedule.unroll =
        reads_much_once(program, kernel) || !adds_eighths(program, kernel) ? 1 : 8;
  schedule.keep = schedule.strategy != Strategy::Pointwise ||
                  bytes_of_squares(kernel) <= program.machine.l2;
  schedule.stream = schedule.strategy != Strategy::Columns &&
                    writes_large_outputs(program, kernel) &&
                    has_streamed_stores(program, kernel, schedule);
  schedule.grain = std::max<int64_t>(1, work_of_thread(program.machine) / unit);
  return schedule;
}

// Whether blocks go over rows in turns, which no thread and no shared memory holds for the next sweep.
bool reads_rows_in_turns(const Schedule& schedule) {
  return schedule.via.empty() &&
         std::any_of(schedule.loops.begin(), schedule.loops.end(),
                     [](const Layout& loop) { return extent_of(loop, Level::Serial) > 1; });
}

// Whether its sweeps are better off as kernels: where columns are read twice rather than held, where no
// layout suits them all, so that a thread would do each row alone, where rows are stored across, and where a
// multiprocessor has no more than one of those that each sweep reads again anyway: as kernels they are split.
bool wants_sweeps_apart(const Program& program, const Kernel& kernel) {
  if (!can_part_sweeps(program, kernel)) return false;
  if (is_worth_reading_twice(kernel)) return true;
  if (!has_many_elements(kernel)) return false;
  if (stores_across(kernel)) return true;
  const Schedule whole = choose(program, order_rows(kernel));
  return whole.strategy != Strategy::Layouts ||
         (row_count(kernel).constant() <= program.machine.multiprocessors &&
          reads_rows_in_turns(whole));
}

// What it is run as, in order: itself, or the parts that it is split into, whose buffers the
// program gets. `alone`: no other kernel is part of its launch.
std::vector<Kernel> parts_of(Program& program, const Kernel& kernel, bool alone) {
  if (alone && can_split_dot(program, kernel)) return split_dot(program, kernel);
  if (alone && can_split(program, kernel)) return split_reduction(program, kernel);
  if (can_split_scan(program, kernel)) return split_scan(program, kernel);
  const auto parts_of_all = [&](const std::vector<Kernel>& kernels) {
    std::vector<Kernel> parts;
    for (const Kernel& own : kernels)
      for (Kernel& part : parts_of(program, own, true)) parts.push_back(std::move(part));
    return parts;
  };
  if (can_part_scans(program, kernel)) return parts_of_all(part_scans(program, kernel));
  if (alone && wants_sweeps_apart(program, kernel))
    return parts_of_all(part_sweeps(program, kernel));
  if (can_split_sort(program, kernel)) return split_sort(program, kernel);
  const bool splits = can_split_scatter(program, kernel);
  if (can_order_updates(program, kernel) && (!splits || has_short_chains(kernel)))
    return order_updates(program, kernel);
  if (splits) return split_scatter(program, kernel);
  return {kernel};
}

// What kernels store that will share a function with others, of any number of points.
std::set<std::vector<int>> stored_by_counted(const Program& program) {
  std::set<std::vector<int>> stored;
  const Program grouped = group_launches(program);
  const std::vector<int> rooms = rooms_of(grouped);
  for (size_t k = 0; k < grouped.kernels.size(); k++) {
    if (rooms[k] > 0 && is_counted(grouped.kernels[k]))
      stored.insert(stored_buffers(grouped.kernels[k]));
  }
  return stored;
}

// Points of a GPU, once it is known which kernels share a function.
void lay_out_points(Program& program, const std::vector<bool>& is_given) {
  if (program.target == Target::Cpp || !sizes(program).empty()) return;
  const std::set<std::vector<int>> counted = stored_by_counted(program);
  for (size_t k = 0; k < program.kernels.size(); k++) {
    Kernel& kernel = program.kernels[k];
    if (!is_given[k] && schedule_of(kernel).strategy == Strategy::Pointwise)
      kernel.schedule =
          points_laid_out(program, kernel, counted.count(stored_buffers(kernel)) > 0);
  }
}

Kernel settled(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cpp ? with_settled_conditions(kernel) : kernel;
}

// A program whose kernels are those that each kernel of another is run as, in order, not yet scheduled.
struct Taken {
  Program program;
  std::vector<std::vector<int>> parts;  // of each kernel
};

bool launches_in_order(const Program& program) {
  for (size_t k = 0; k < program.launches.size(); k++)
    if (program.launches[k] != std::vector{static_cast<int>(k)}) return false;
  return true;
}

Taken take_apart(const Program& program) {
  Taken taken{program, std::vector<std::vector<int>>(program.kernels.size())};
  Program& result = taken.program;
  result.kernels.clear();
  std::vector<bool> beside(program.kernels.size());  // a product that makes its sums
  for (const std::vector<int>& launch : program.launches) {
    for (int kernel : launch) beside[kernel] = launch.size() > 1;
  }
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const Kernel& given = program.kernels[k];
    for (Kernel& part :
         given.schedule ? std::vector{given}
                        : parts_of(result, collapse_axes(order_loops(settled(program, given))),
                                   !beside[k])) {
      taken.parts[k].push_back(static_cast<int>(result.kernels.size()));
      result.kernels.push_back(std::move(part));
    }
  }
  if (launches_in_order(program)) join_parts(result, taken.parts);
  return taken;
}

// As another form of it, where one is faster; and how that runs.
Kernel scheduled(const Program& program, Kernel kernel) {
  if (program.target == Target::Cpp)
    kernel = with_divided_rows_apart(with_thin_dots_written_out(std::move(kernel)));
  kernel = with_windows_written_out(program, order_rows(std::move(kernel)));
  kernel = with_short_rows_as_points(program, std::move(kernel));
  kernel = with_single_rows_as_points(program, std::move(kernel));
  if (std::optional<Kernel> rows = transposed(program, kernel)) kernel = std::move(*rows);
  if (!kernel.schedule) kernel.schedule = choose(program, kernel);
  if (kernel.sized.empty()) kernel.sized = sized_layouts(program, kernel);
  return kernel;
}

// The launches of a program's kernels as those of their parts: the first of each, the second of each, ..
std::vector<std::vector<int>> launches_of(const Program& program,
                                          const std::vector<std::vector<int>>& parts) {
  std::vector<std::vector<int>> launches;
  for (const std::vector<int>& launch : program.launches) {
    size_t longest = 0;
    for (int kernel : launch) longest = std::max(longest, parts[kernel].size());
    for (size_t turn = 0; turn < longest; turn++) {
      launches.emplace_back();
      for (int kernel : launch) {
        if (turn < parts[kernel].size()) launches.back().push_back(parts[kernel][turn]);
      }
    }
  }
  return launches;
}

}  // namespace

Program schedule(const Program& fused) {
  const Program program = shorten_sorts(fused);
  Taken taken = take_apart(program);
  Program result = taken.program;
  result.launches = launches_of(program, taken.parts);
  std::vector<bool> is_given;  // a kernel's schedule
  for (Kernel& kernel : result.kernels) {
    is_given.push_back(kernel.schedule.has_value());
    if (!kernel.schedule) kernel = scheduled(taken.program, std::move(kernel));
  }
  lay_out_points(result, is_given);
  return result;
}

Program with_schedules(Program program) {
  if (program.target == Target::Cpp) return program;
  std::vector<bool> is_given;
  for (Kernel& kernel : program.kernels) {
    is_given.push_back(kernel.schedule.has_value());
    if (kernel.schedule) continue;
    kernel = with_single_rows_as_points(program, std::move(kernel));
    kernel.schedule = choose(program, kernel);
  }
  lay_out_points(program, is_given);
  return program;
}

}  // namespace tiny_compile
