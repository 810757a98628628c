// How long does a kernel take? The model has five terms, each a count over a rate (rates.h):
//
//   launch      once
//   bytes       bytes_moved, more where a column is read again or a warp's neighbours are few
//   latency     bytes * (groups + wait) / groups: groups of threads that no barrier joins; one that
//               waits leaves the memory to the others
//   arithmetic  instructions of all points; waste: the same of points that are none
//
// Calibrated by softmax down columns on an H200 (tests/bench/NOTES.md, "Layouts: the first kernels"): of
// 512 rows 16 warps of whole lines .084 ms, 8 warps of 64-byte pieces .093; of 1000 rows 32 warps
// .131, 16 of pieces .120; of 196 .086 and .099. The model puts each pair in that order. What is read
// once: the maximum over the middle of bf16[2048,128,1280] .167 ms, sums of the rows of f32[65536,1000]
// .070, of the columns of f32[16384,4096] .065; the model says .169, .065 and .066. Of what was not looked
// at before, README's rows: softmax .133 and .151, transpose_add .191 and .193, mse .124 and .138.
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/loops/scan_shape.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/eighths.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/point_packs.h"
#include "tiny_compile/loops/scan_shape.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/schedule/enumerate.h"
#include "tiny_compile/schedule/occupancy.h"
#include "tiny_compile/schedule/outline.h"
#include "tiny_compile/schedule/panel_tiles.h"
#include "tiny_compile/schedule/points.h"
#include "tiny_compile/schedule/product_tiles.h"
#include "tiny_compile/schedule/rates.h"
#include "tiny_compile/schedule/scanned_rows.h"
#include "tiny_compile/schedule/scattered_rows.h"
#include "tiny_compile/schedule/sorted_rows.h"

namespace tiny_compile {
namespace {

constexpr double kWait = 0.7;     // of a group's time it waits at barriers and ends of loads
constexpr double kEnd = 0.1;      // the same where nothing is read or written after a barrier
constexpr double kRow = 0.06;     // time for each row more that a thread has side by side
constexpr double kMostHeld = 96;  // elements of a thread: their sums need registers too
constexpr double kSector = 32;    // bytes that come at once at least
constexpr double kNear = 1.6;  // over memory: the rate at which neighbours get the rest of them
constexpr double kCostly = 20;    // instructions of exp, tanh, ...: the prelude's, counted
constexpr double kQuotient = 10;  // of a division that rounds right
constexpr double kShuffle = 2;    // a shuffle and an add
constexpr double kExchange = 8;   // to shared memory, a barrier, back, an add
constexpr double kStrip = 8;      // of a CPU: lanes that the start of a line costs
constexpr double kSpill = 2;      // over the time of registers that there are
constexpr double kWarp = 32;
constexpr double kLine =
    2;  // a line of L1 for 32 points: half a clock, as some go on beside it
constexpr double kSomeWarps = 16;  // that go on by themselves, of families without layouts

// How a schedule deals a kernel to the machine.
struct Deal {
  double passes = 1;    // times that memory, or the last cache, is read
  double groups = 16;   // of threads that no barrier joins, on a multiprocessor
  double width = 1;     // time over that of whole lines
  double covered = 1;   // points that threads go over, for each that there is
  double exchange = 0;  // instructions a point for what threads hand to each other
  double share = 1;     // of the machine that has work
};

double points_of(const Kernel& kernel) {
  double inner = 1;
  for (const Step& step : kernel.steps)
    inner = std::max(inner, as_double(inner_count(kernel, step).bounds().high));
  return inner * as_double(row_count(kernel).bounds().high);
}

// Instructions a point, of all its steps.
double instructions_of(const Kernel& kernel) {
  double count = 2;
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind != ScalarKind::Apply) continue;
    const bool divides = scalar.op == Op::div;
    count += is_costly(scalar) ? kCostly : divides ? kQuotient : 1;
  }
  for (const Step& step : kernel.steps) count += step.op == Op::sum_exp ? kCostly : 1;
  return count;
}

// How often it goes over a row's elements.
double loops_over(const Kernel& kernel) {
  double count = 0;
  for (const std::vector<int>& pass : sweeps_of(kernel))
    count += kernel.steps[pass[0]].inner.empty() ? 0 : 1;
  return std::max(1.0, count);
}

// Accesses ---------------------------------------------------------------------------------------

double time_of_piece(double bytes) {
  return bytes >= kSector ? 1 : std::max(1.0, kSector / bytes / kNear);
}

// Elements of a layout that neighbouring lanes have.
double side_by_side(const Layout& layout) {
  return as_double(extent_of(layout, Level::Lane) * extent_of(layout, Level::Vector));
}

// Whether neighbouring rows are lanes, of a CPU's vectors or a GPU's warps.
bool has_rows_as_lanes(const Program& program, Strategy strategy) {
  return strategy == Strategy::Columns ||
         (strategy == Strategy::Rows && program.target == Target::Cuda);
}

// How far apart neighbours along an axis lie. Where quotients and remainders say it: the least of two steps in
// the middle of the axis, of which one may lead from a run into the next.
int64_t step_along(const Kernel& kernel, const Expr& index, int axis) {
  const Axis& along = kernel.axes[axis];
  const int64_t step = std::abs(coefficient(index, along.symbol()));
  if (step != 0 || !depends_on(index, along.name)) return step;
  std::vector<Expr> symbols;
  collect_symbols(index, symbols);
  const auto at = [&](int64_t place) {
    SymbolValues values;
    for (const Expr& symbol : symbols)
      values.emplace_back(symbol.symbol(), symbol.name() == along.name ? place : 0);
    return evaluate(index, values);
  };
  const int64_t count = along.extent.constant(), first = std::max<int64_t>(0, count / 2 - 2);
  const auto step_from = [&](int64_t place) {
    return std::abs(at(std::min(place + 1, count - 1)) - at(std::min(place, count - 1)));
  };
  return std::min(step_from(first), step_from(first + 1));
}

// Elements side by side that a warp reads at an index.
double piece_at(const Program& program, const Kernel& kernel, const Expr& index) {
  const Schedule& s = *kernel.schedule;
  const bool in_lanes = has_rows_as_lanes(program, s.strategy);
  const int64_t along_rows = step_along(kernel, index, kernel.rows - 1);
  if (along_rows == 1) {
    if (s.strategy == Strategy::Layouts) return side_by_side(s.rows);
    return s.strategy == Strategy::Rows && !in_lanes ? 1 : kWarp;
  }
  for (const std::vector<int>& inner : loops_of(kernel)) {
    if (step_along(kernel, index, inner.back()) != 1) continue;
    if (s.strategy == Strategy::Layouts) return side_by_side(layout_over(kernel, inner));
    return in_lanes ? 1 : kWarp;
  }
  return along_rows == 0 ? kWarp : 1;  // one element for all, or far apart
}

// The mean over all that it reads and writes; what happens once a row counts for little.
double width_of(const Program& program, const Kernel& kernel) {
  const double once = as_double(row_count(kernel).bounds().high) / points_of(kernel);
  double sum = 0, count = 0;
  const auto see = [&](const Expr& index, int buffer) {
    const double size = as_double(size_of(program.buffers[buffer].type.dtype));
    if (index.is_constant() || kernel.rows == 0) return;
    const bool in_loops =
        std::any_of(kernel.axes.begin() + kernel.rows, kernel.axes.end(),
                    [&](const Axis& axis) { return depends_on(index, axis.name); });
    const double weight = in_loops ? 1 : once;
    sum += weight * time_of_piece(piece_at(program, kernel, index) * size), count += weight;
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) see(scalar.index, scalar.buffer);
  }
  for (const Step& step : kernel.steps) {
    if (!makes_register(step)) see(step.index, step.buffer);
  }
  return count > 0 ? sum / count : 1;
}

// Elements, f32, that a multiprocessor of a GPU must have asked for at a time to keep memory busy.
double under_way(const Machine& machine) {
  const Rates rates = rates_of(machine);
  return rates.bytes * rates.latency / 4 / as_double(machine.multiprocessors);
}

// Layouts ----------------------------------------------------------------------------------------

// Instructions by which the threads of a loop bring their results together, a covered element.
double exchange_of(const Layout& loop) {
  const double elements = as_double(covered_by(loop));
  double live = as_double(own_elements(loop));
  const double held = live;
  double count = 0;
  for (const Bit& bit : bits_in_order(loop)) {
    const CombinedBy how = combined_by(bit.level);
    if (how == CombinedBy::Thread) live /= 2;
    if (how == CombinedBy::Shuffle) count += live * kShuffle;
    if (how == CombinedBy::Exchange) count += live * kExchange;
  }
  return elements > 0 ? count / held : 0;
}

Deal deal_of_layouts(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  const double rows = as_double(rows_laid_out(kernel)), at_once = as_double(covered_by(s.rows)),
               of_rows = std::ceil(rows / at_once) * cluster_of(s),
               blocks = of_rows * as_double(blocks_of_loops(kernel) * outer_rows(kernel)),
               threads = kWarp * warps_of(s);
  const double multiprocessors = as_double(program.machine.multiprocessors);
  Deal d;
  double elements = 1, warps = 1, padded = 1, longest = 1, turns = 1;
  for (const std::vector<int>& inner : loops_of(kernel)) {
    const Layout loop = layout_over(kernel, inner);
    warps = std::max(warps, as_double(extent_of(loop, Level::Warp)));
    turns = std::max(turns, as_double(extent_of(loop, Level::Serial)));
    elements = std::max(elements, as_double(own_elements(loop)));
    const double count = as_double(elements_of(kernel, inner));
    const double of_blocks = as_double(covered_by(loop) * blocks_of_loops(kernel));
    if (count >= longest) longest = count, padded = of_blocks;
    d.exchange += exchange_of(loop);
  }
  elements *= as_double(own_elements(s.rows));
  d.covered = padded / longest * (of_rows * at_once / rows);
  d.width = width_of(program, kernel);
  d.passes = turns > 1 ? loops_over(kernel) : 1;
  const Occupancy occupancy = occupancy_of(program.machine, static_cast<int64_t>(threads),
                                           static_cast<int64_t>(elements), 0);
  const double resident =
      std::min(as_double(occupancy.blocks()), std::ceil(blocks / multiprocessors));
  const double asked = resident * threads * std::max(1.0, elements);
  const double groups =
      warps > 1 ? resident : resident * warps_of(s);  // a barrier joins a block
  d.groups = groups * std::min(1.0, asked / under_way(program.machine));
  if (occupancy.by_registers == 0 || elements > kMostHeld) d.width *= kSpill;
  d.width *= 1 + kRow * (as_double(extent_of(s.rows, Level::Vector)) - 1);
  d.share = std::min(1.0, blocks / multiprocessors);
  return d;
}

// Other families ---------------------------------------------------------------------------------

Deal deal_of_points(const Program& program, const Kernel& kernel) {
  const PointPacks packs = point_packs_of(program, kernel, false);
  const double multiprocessors = as_double(program.machine.multiprocessors),
               threads = as_double(packs.block), own = as_double(packs.slabs * packs.vector),
               blocks = std::max(1.0, std::ceil(points_of(kernel) / (own * threads)));
  const Occupancy occupancy =
      occupancy_of(program.machine, packs.block, packs.slabs * packs.vector, 0);
  const double resident =
      std::min(as_double(occupancy.blocks()), std::ceil(blocks / multiprocessors));
  Deal d;
  d.groups = kSomeWarps * std::min(1.0, resident * threads * own / under_way(program.machine));
  d.exchange = kLine * lines_of_packs(program, kernel, packs.vector);
  d.share = std::min(1.0, blocks / multiprocessors);
  return d;
}

Deal deal_on_cuda(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  const double multiprocessors = as_double(program.machine.multiprocessors);
  const double rows = as_double(row_count(kernel).bounds().high);
  if (s.strategy == Strategy::Pointwise) return deal_of_points(program, kernel);
  Deal d;
  d.groups = kSomeWarps;
  if (kernel.rows == 0) return d;
  d.passes = loops_over(kernel);
  d.width = width_of(program, kernel);
  d.share = std::min(1.0, rows / kWarp / multiprocessors);
  return d;
}

Deal deal_on_cpu(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  const double cores = as_double(program.machine.cores);
  const double rows = as_double(row_count(kernel).bounds().high);
  const bool large = as_double(bytes_moved(program, kernel)) > rates_of(program.machine).cached;
  const double units =
      s.strategy == Strategy::Columns ? std::max(1.0, rows / as_double(columns_unit(s))) : rows;
  Deal d;
  d.share = std::clamp(units / as_double(s.grain), 1.0, cores) / cores;
  const double strip =
      points_of(kernel) / rows * 4 * (s.strategy == Strategy::Columns ? s.lanes : 1);
  if (strip > as_double(program.machine.l2)) d.passes = loops_over(kernel);
  d.width = width_of(program, kernel);
  if (s.strategy == Strategy::Columns) d.width *= 1 + kStrip / s.lanes;
  const bool stores = std::any_of(
      kernel.steps.begin(), kernel.steps.end(),
      [](const Step& step) { return step.kind == StepKind::Store && !step.inner.empty(); });
  const bool writes = stores || s.strategy == Strategy::Pointwise;
  if (writes && s.stream == large) d.width *= 0.8;  // a line is not read before it is written
  if (s.strategy == Strategy::Rows && (s.unroll == 8) == large && adds_eighths(program, kernel))
    d.width *= 1.1;  // eight streams
  if (!s.keep && s.strategy == Strategy::Rows) d.exchange = kCostly * (loops_over(kernel) - 1);
  if (!s.keep && s.strategy == Strategy::Pointwise)
    d.width *= 2;  // a line of what lies across serves one element
  return d;
}

// Products a second: halves by tensor cores, tf32 at half their rate, others by all lanes.
double products_of(const Program& program, const Kernel& kernel, const Rates& rates) {
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Dot) continue;
    const DType dtype = kernel.scalars[step.value].dtype;
    if (is_half(dtype)) return rates.products;
    if (dtype == DType::f32 && program.matmul == Matmul::LibraryTf32) return rates.products / 2;
  }
  return rates.instructions;
}

Deal deal_of(const Program& program, const Kernel& kernel) {
  if (kernel.schedule->strategy == Strategy::Layouts) return deal_of_layouts(program, kernel);
  return program.target == Target::Cuda ? deal_on_cuda(program, kernel)
                                        : deal_on_cpu(program, kernel);
}

bool multiplies(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Dot; });
}

// What is known better of kernels of some families.
Estimate priced_by_family(const Program& program, const Kernel& own, double moved, double share,
                          Estimate e) {
  const Rates rates = rates_of(program.machine);
  if (program.target == Target::Cuda && scans_in_groups(program, own)) {
    const ScanTimes times = scan_times(program, own);
    e.bytes = times.bytes * 1e6;
    e.latency = std::max(0.0, times.waits - times.bytes) * 1e6;
  }
  if (const auto time = time_of_sort(program, own)) {
    e.arithmetic = *time * 1e6;
    e.waste = e.latency = 0;
    if (program.target == Target::Cuda) e.bytes = moved / rates.bytes * 1e6;
  }
  if (const auto waits = waits_of_scatter(program, own)) {
    e.bytes = moved / rates.bytes * 1e6;
    e.latency = *waits * 1e6;
    e.arithmetic *= share;
    e.waste = 0;
  }
  if (program.target == Target::Cpp && multiplies(own)) {
    if (own.schedule->strategy == Strategy::Tiles)
      e.arithmetic = time_of_panels(program, own) * 1e6;
    else  // an element after the other
      e.arithmetic *= as_double(program.machine.vector) / 4;
    e.waste = 0;
  }
  if (own.schedule->strategy == Strategy::Tiles && program.target == Target::Cuda) {
    const TileTimes times = tile_times(program, own);
    e.arithmetic = times.arithmetic * 1e6;
    e.waste = times.all * 1e6 - e.arithmetic;
  }
  return e;
}

std::string microseconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : "%.1f", value);
  return text;
}

std::string explained(const Program& program, const Kernel& kernel) {
  const Schedule chosen = *kernel.schedule;
  const Estimate own = estimate(program, kernel);
  const std::vector<Priced> all = ranked(program, kernel);
  const auto cheaper = std::count_if(all.begin(), all.end(), [&](const Priced& priced) {
    return priced.microseconds < own.total() && !(priced.schedule == chosen);
  });
  const std::string line = kernel.name + ": " + str(chosen) + "\n  " + str(own);
  for (const Priced& other : all) {
    if (other.schedule == chosen) continue;
    return line + "\n  number " + str(cheaper + 1) + " of " + str(all.size()) +
           " legal ones; the cheapest other by the model: " + str(other.schedule) + ", " +
           microseconds(other.microseconds) + " us";
  }
  return line + "\n  there is no other legal one";
}

}  // namespace

double Estimate::total() const {
  return launch + std::max(bytes + latency, arithmetic + waste);
}

Estimate estimate(const Program& program, const Kernel& kernel) {
  Kernel own = kernel;
  own.schedule = schedule_of(kernel);
  const Rates rates = rates_of(program.machine);
  const Deal deal = deal_of(program, own);
  const double moved = as_double(bytes_moved(program, own)), scale = 1e6 / deal.share;
  const bool again_from_cache = moved <= rates.cached;
  Estimate e;
  e.launch = rates.launch * 1e6;
  e.bytes = moved / rates.bytes * deal.width * scale;
  e.bytes +=
      (deal.passes - 1) * moved / (again_from_cache ? rates.cached_bytes : rates.bytes) * scale;
  if (program.target == Target::Cuda)
    e.latency = e.bytes * (loops_over(own) > 1 ? kWait : kEnd) / deal.groups;
  e.arithmetic =
      points_of(own) * (instructions_of(own) + deal.exchange) / rates.instructions * scale;
  if (own.schedule->strategy == Strategy::Library)
    e.arithmetic = points_of(own) / products_of(program, own, rates) * 1e6;
  e.waste = e.arithmetic * (deal.covered - 1);
  return priced_by_family(program, own, moved, deal.share, e);
}

double estimate(const Program& program) {
  double sum = 0;
  for (const std::vector<int>& launch : program.launches) {
    double start = 0;
    for (const int kernel : launch) {
      const Estimate e = estimate(program, program.kernels[kernel]);
      sum += e.total() - e.launch;
      start = std::max(start, e.launch);
    }
    sum += start;
  }
  return sum;
}

std::string bound_of(const Estimate& e) {
  const bool memory = e.bytes + e.latency > e.arithmetic + e.waste;
  const double most = memory ? e.bytes + e.latency : e.arithmetic + e.waste;
  if (e.launch > most) return "launch";
  if (memory) return e.bytes >= e.latency ? "bytes" : "latency";
  return e.arithmetic >= e.waste ? "arithmetic" : "waste";
}

std::string str(const Estimate& e) {
  return microseconds(e.total()) + " us by the model, bound by " + bound_of(e) + " (launch " +
         microseconds(e.launch) + ", bytes " + microseconds(e.bytes) + " + latency " +
         microseconds(e.latency) + ", arithmetic " + microseconds(e.arithmetic) + " + waste " +
         microseconds(e.waste) + ")";
}

std::vector<Priced> ranked(const Program& program, const Kernel& kernel) {
  std::vector<Priced> all;
  Kernel tried = kernel;
  for (const Schedule& schedule : enumerate(program, kernel)) {
    tried.schedule = schedule;
    all.push_back({schedule, estimate(program, tried).total()});
  }
  std::stable_sort(all.begin(), all.end(), [](const Priced& a, const Priced& b) {
    return a.microseconds < b.microseconds;
  });
  return all;
}

std::vector<std::string> explain_schedules(const Program& program) {
  std::vector<std::string> lines;
  for (const Kernel& kernel : program.kernels) {
    if (kernel.schedule && !has_symbolic_sizes(kernel))
      lines.push_back(explained(program, kernel));
  }
  return lines;
}

}  // namespace tiny_compile
