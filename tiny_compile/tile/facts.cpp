// What is worth knowing of a kernel's schedule, and how does it read?
//
//   who: a block of 8 warps has 8 of 4096 rows; a warp takes 128 neighbours of a row at a time; ...
//   order: r0 = max, r1 = sum of 1000: 5 halvings in the thread, 5 between lanes
//   shared memory: given3, 2048 bytes: 512 f32 that warps hand to each other
//   limit: latency; 14.9 us by the model, 1.9 times the 7.7 us of its 32.77 MB; ...
//
// The facts are numbers that others have already decided on: layouts, the tile's arrays and the
// cost model. Nothing is decided here.
#include "tiny_compile/tile/facts.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/schedule/rates.h"
#include "tiny_compile/schedule/scattered_rows.h"
#include "tiny_compile/tile/owner.h"
#include "tiny_compile/tile/reduce.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {
namespace {

// Facts ------------------------------------------------------------------------------------------

bool reduces_over(const Step& step, const std::vector<int>& inner) {
  return step.kind == StepKind::Reduce && step.inner == inner;
}

bool are_same(const std::vector<Bit>& a, const std::vector<Bit>& b) {  // of one layout
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Bit& x, const Bit& y) { return x.stride == y.stride; });
}

// Neighbours that a warp has at a time: a layout's lowest parts, as long as they are its lanes'
// and vectors'.
int64_t run_of_warp(const Layout& layout) {
  int64_t run = 1;
  for (auto part = layout.rbegin(); part != layout.rend(); part++) {
    if (part->level != Level::Lane && part->level != Level::Vector) break;
    run *= part->extent;
  }
  return run;
}

// Bytes of neighbours in memory that a warp reads at a time, by the first load that has any.
int64_t bytes_side_by_side(const Program& program, const Kernel& kernel,
                           const std::vector<int>& inner) {
  const auto walks = [&](const Scalar& load, int axis) {
    return coefficient(load.index, kernel.axes[axis].symbol()) == 1;
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind != ScalarKind::Load) continue;
    const int64_t size =
        static_cast<int64_t>(size_of(program.buffers[scalar.buffer].type.dtype));
    if (walks(scalar, inner.back())) return size * run_of_warp(layout_over(kernel, inner));
    if (kernel.rows > 0 && walks(scalar, kernel.rows - 1))
      return size * run_of_warp(kernel.schedule->rows);
  }
  return 0;
}

LoopFacts loop_facts(const Program& program, const Kernel& kernel,
                     const std::vector<int>& inner) {
  LoopFacts loop{inner,
                 elements_of(kernel, inner),
                 layout_over(kernel, inner),
                 bytes_side_by_side(program, kernel, inner),
                 {}};
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    const Step& step = kernel.steps[s];
    if (!reduces_over(step, inner)) continue;
    const DType dtype = accumulator(step.op, kernel.scalars[step.value].dtype);
    const std::vector<Bit> order = order_of({step.op, dtype}, bits_in_order(loop.layout));
    const std::string name = str("r", s, " = ", info(step.op).name);
    std::vector<ReductionFacts>& all = loop.reductions;
    const auto same = std::find_if(all.begin(), all.end(), [&](const ReductionFacts& other) {
      return are_same(other.order, order);
    });
    if (same == all.end())
      all.push_back({{name}, order});
    else
      same->names.push_back(name);
  }
  return loop;
}

// As the stage `tile` makes it of a GPU's kernel; none where the vendor's library is called.
std::optional<Tile> tile_of(const Program& program, const Kernel& kernel) {
  if (program.target == Target::Cpp) return std::nullopt;
  Program alone = program;
  alone.kernels = {kernel};
  alone.launches = {{0}};
  return lower_to_tiles(alone).of_kernel[0];
}

BlockFacts block_facts(const Program& program, const Kernel& kernel, const Tile& tile,
                       const std::vector<SharedUse>& shared) {
  const Schedule& s = *kernel.schedule;
  BlockFacts block;
  block.rows = covered_by(s.rows);
  block.count = row_count(kernel).constant();
  block.blocks = tile.grid.constant() * tile.cluster;
  block.warps = tile.warps;
  block.multiprocessors = program.machine.multiprocessors;
  int64_t most = 1;
  for (const std::vector<int>& inner : loops_of(kernel)) {
    block.loops.push_back(loop_facts(program, kernel, inner));
    most = std::max(most, own_elements(block.loops.back().layout));
  }
  for (const SharedUse& use : shared) block.shared += use.bytes;
  block.of_loops = blocks_of_loops(kernel);
  block.occupancy = occupancy_of(program.machine, int64_t{32} * tile.warps,
                                 most * own_elements(s.rows), block.shared);
  return block;
}

// Of each scalar, the axes it depends on; what uses a row's register does on all rows' axes.
std::vector<uint64_t> axes_with_registers(const Kernel& kernel) {
  std::vector<uint64_t> axes = axes_of_scalars(kernel);
  for (size_t id = 0; id < axes.size(); id++) {
    if (kernel.scalars[id].kind == ScalarKind::Register)
      axes[id] |= (uint64_t{1} << kernel.rows) - 1;
    for (int operand : kernel.scalars[id].operands) axes[id] |= axes[operand];
  }
  return axes;
}

// Points of these axes.
int64_t evaluations(const Kernel& kernel, uint64_t axes) {
  int64_t count = 1;
  for (size_t a = 0; a < kernel.axes.size(); a++) {
    if (axes >> a & 1) count *= kernel.axes[a].extent.constant();
  }
  return count;
}

void count_costly(ScheduleFacts& facts, const Kernel& kernel) {
  const std::vector<uint64_t> axes = axes_with_registers(kernel);
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (scalar.kind != ScalarKind::Apply) continue;
    if (is_costly(scalar)) facts.costly += evaluations(kernel, axes[id]);
    if (scalar.op == Op::div) facts.quotients += evaluations(kernel, axes[id]);
  }
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Reduce && step.op == Op::sum_exp)
      facts.costly += row_count(kernel).constant() * inner_count(kernel, step).constant();
  }
}

size_t launched_with(const Program& program, const Kernel& kernel) {
  const auto at = std::find_if(program.kernels.begin(), program.kernels.end(),
                               [&](const Kernel& other) { return other.name == kernel.name; });
  const int number = static_cast<int>(at - program.kernels.begin());
  for (const std::vector<int>& launch : program.launches) {
    if (std::count(launch.begin(), launch.end(), number)) return launch.size() - 1;
  }
  return 0;
}

// Words ------------------------------------------------------------------------------------------

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : "%.1f", value);
  return text;
}

std::string large(int64_t count) {
  if (count < 100000) return std::to_string(count);
  return number(static_cast<double>(count) * 1e-6) + " M";
}

std::string plural(int64_t count, const std::string& what) {
  return str(count, " ", what, count == 1 ? "" : "s");
}

std::string who_of_rows(const BlockFacts& block) {
  const std::string parts =
      block.of_loops == 1 ? "" : str(", and a part of ", block.of_loops, " of their elements");
  return str("who: ", plural(block.blocks, "block"), " of ", plural(block.warps, "warp"),
             ", each with ", block.rows, " of ", plural(block.count, "row"), parts);
}

// What a warp takes at a time, and what a thread holds.
std::string who_of_loop(const Schedule& s, const LoopFacts& loop, int warps) {
  const int64_t rows = extent_of(s.rows, Level::Lane) * extent_of(s.rows, Level::Vector),
                taken =
                    extent_of(loop.layout, Level::Lane) * extent_of(loop.layout, Level::Vector),
                turns = extent_of(loop.layout, Level::Serial),
                copies = copies_of_element(s.rows, loop.layout, warps);
  std::string text = str("a warp takes ", plural(taken, "element"));
  text += rows == 1 ? " of a row" : str(" of each of ", rows, " rows");
  text += " at a time";
  if (loop.side_by_side > 0) text += str(", ", loop.side_by_side, " bytes side by side");
  text += str("; a thread holds ", own_elements(loop.layout), " of ", loop.count);
  if (own_elements(s.rows) > 1) text += str(" in each of ", own_elements(s.rows), " rows");
  if (turns > 1) text += str(", in each of ", turns, " turns");
  if (copies > 1) text += str("; ", copies, " threads have the same");
  return text;
}

std::string order_line(const LoopFacts& loop, const ReductionFacts& reduction, int64_t warps) {
  return str("order: ", join(reduction.names, ", "), " of ", loop.count, ": ",
             in_words(reduction.order, warps));
}

std::string limit_in_words(const Estimate& e) {
  const std::string bound = bound_of(e);
  if (bound == "latency") return "latency, since too few loads are under way";
  return bound == "waste" ? "waste, points beyond the last" : bound;
}

std::string limit_line(const ScheduleFacts& facts) {
  const Estimate& e = facts.estimate;
  std::string text = str("limit: ", limit_in_words(e), "; ", number(e.total()),
                         " us by the model, ", number(e.total() / facts.floor),
                         " times what a launch and ", large(facts.bytes), " bytes take");
  if (facts.costly > 0) text += str("; ops like exp: ", large(facts.costly));
  if (facts.quotients > 0) text += str("; quotients: ", large(facts.quotients));
  if (e.waste > 0)
    text +=
        str("; ", number(100 * e.waste / (e.arithmetic + e.waste)), " % of points are none");
  if (facts.launched_with > 0)
    text +=
        str("; one launch with ", plural(static_cast<int64_t>(facts.launched_with), "other"));
  if (!facts.block) return text;
  const Occupancy& o = facts.block->occupancy;
  if (facts.block->blocks < facts.block->multiprocessors)
    text += str("; ", plural(facts.block->blocks, "block"), " for ",
                facts.block->multiprocessors, " multiprocessors");
  return text + str("; ", plural(o.blocks(), "block"), " fit a multiprocessor, by ", o.limit());
}

std::string without_layouts(Strategy strategy) {
  switch (strategy) {
    case Strategy::Pointwise: return "one flat range of points, each a thread's";
    case Strategy::Rows: return "one row after another, its elements side by side";
    case Strategy::Columns: return "neighbouring rows side by side";
    case Strategy::Tiles: return "blocks of a product's rows and columns";
    case Strategy::Library: return "a call of the vendor's library";
    case Strategy::Layouts: break;
  }
  return "";
}

std::string who_without_layouts(const ScheduleFacts& facts) {
  if (!facts.scattered.empty()) return facts.scattered;
  const Strategy strategy = facts.schedule.strategy;
  return str(without_layouts(strategy), "; schedule ", name_of(strategy), " has no layouts");
}

}  // namespace

bool has_facts(const Kernel& kernel) {
  return kernel.schedule &&
         std::all_of(kernel.axes.begin(), kernel.axes.end(),
                     [](const Axis& axis) { return axis.extent.is_constant(); });
}

ScheduleFacts facts_of(const Program& program, const Kernel& kernel) {
  CHECK(has_facts(kernel));
  ScheduleFacts facts;
  facts.kernel = kernel.name;
  facts.schedule = *kernel.schedule;
  facts.scattered = who_scatters(program, kernel);
  const std::optional<Tile> tile = tile_of(program, kernel);
  if (tile) facts.shared = shared_uses(program, kernel, *tile);
  if (facts.schedule.strategy == Strategy::Layouts)
    facts.block = block_facts(program, kernel, *tile, facts.shared);
  facts.estimate = estimate(program, kernel);
  facts.bytes = bytes_moved(program, kernel);
  const Rates rates = rates_of(program.machine);
  facts.floor = (rates.launch + static_cast<double>(facts.bytes) / rates.bytes) * 1e6;
  facts.launched_with = launched_with(program, kernel);
  count_costly(facts, kernel);
  return facts;
}

std::string in_words(const std::vector<Bit>& order, int64_t warps) {
  std::vector<std::string> words;
  for (size_t from = 0, to = 0; from < order.size(); from = to) {
    const Level level = order[from].level;
    const auto same = [&](size_t b) {
      return is_own(level) ? is_own(order[b].level) : joins(order[b - 1], order[b]);
    };
    for (to = from + 1; to < order.size() && same(to);) to++;
    const int64_t bits = static_cast<int64_t>(to - from);
    const std::string times = words.empty() ? plural(bits, "halving") : std::to_string(bits);
    if (level == Level::Cluster)
      words.push_back(str("an exchange of ", int64_t{1} << bits, " blocks"));
    else if (level == Level::Warp)
      words.push_back(str("an exchange of ",
                          std::min(int64_t{1} << bits, warps / order[to - 1].step), " warps"));
    else
      words.push_back(times + (is_own(level)                               ? " in the thread"
                               : combined_by(level) == CombinedBy::Shuffle ? " between lanes"
                                                                           : " between turns"));
  }
  return words.empty() ? "nothing to add" : join(words, ", ");
}

std::vector<std::string> lines(const ScheduleFacts& facts) {
  std::vector<std::string> result;
  if (facts.block) {
    const BlockFacts& block = *facts.block;
    result = {who_of_rows(block)};
    for (const LoopFacts& loop : block.loops) {
      result[0] += "; " + who_of_loop(facts.schedule, loop, block.warps);
      for (const ReductionFacts& reduction : loop.reductions)
        result.push_back(order_line(loop, reduction, block.warps));
    }
    if (facts.shared.empty()) result.push_back("shared memory: none");
  } else {
    result = {"who: " + who_without_layouts(facts)};
  }
  for (const SharedUse& use : facts.shared) result.push_back(str(use));
  result.push_back(limit_line(facts));
  return result;
}

}  // namespace tiny_compile
