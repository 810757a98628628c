// Does each element belong to somebody, and can a block of the machine hold what it is asked to?
//
//   loop register 8 · lane 32, of 1000   =>  "loop 1 covers 256 of 1000"
//   rows lane 32 loop lane 2             =>  "loop 1 takes lanes that the rows have"
//
// A layout that passes gives the interpreter's bits: nothing here asks whether it is a good one.
#include "tiny_compile/loops/legal_layouts.h"

#include <algorithm>
#include <map>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/asked_ahead.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/fold.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_via.h"
#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostWarps = 32;
constexpr int64_t kMostElements = 128;  // elements of a thread at a time
constexpr int64_t kBesides =
    1 << 10;  // of a block's bytes, that arrays are filled up with and wait by
constexpr int64_t kMostBlocks = INT32_MAX;
constexpr int64_t kWidest = 8;  // elements of one access

std::string why_wrong_part(const Part& part, bool is_first, bool is_last, bool is_loop,
                           bool has_grid) {
  const std::string name = name_of(part.level);
  const bool has_step = is_numbered(part.level);
  const bool is_top_warp = part.level == Level::Warp && is_first && is_loop;
  if (!is_power_of_two(part.extent) && !(is_top_warp && part.extent > 0))
    return str(name, " ", part.extent, ": no power of two");
  if (!is_power_of_two(part.step) || (part.step > 1 && !has_step))
    return str(name, " from ", part.step, ": a power of two, of blocks, warps and lanes");
  if (part.level == Level::Grid && (!has_grid || !is_first))
    return "grid is the first part of rows and of loops that only store, what the others leave";
  if (part.level == Level::Vector && !is_last) return "vector is the last part";
  if (part.level == Level::Vector && part.extent > kWidest)
    return str("vector ", part.extent, ": at most ", kWidest);
  if (part.level == Level::Cluster)
    return is_loop ? "" : "rows are not shared by the blocks of a cluster";
  const int64_t most = part.level == Level::Lane ? kLanes : kMostWarps;
  if (has_step && part.extent * part.step > most)
    return str(name, " ", part.extent, " from ", part.step, ": a ",
               part.level == Level::Lane ? "warp has 32 lanes" : "block has at most 32 warps");
  return "";
}

// Turns in one run of the order of a reduction: what comes before them is done in each.
bool has_turns_apart(const Layout& layout) {
  int runs = 0;
  Level last = Level::Grid;
  for (const Bit& bit : bits_in_order(layout)) {
    runs += bit.level == Level::Serial && last != Level::Serial;
    last = bit.level;
  }
  return runs > 1;
}

std::string why_wrong(const Layout& layout, const std::string& name, int64_t count,
                      bool is_loop, bool has_grid) {
  for (size_t p = 0; p < layout.size(); p++) {
    const std::string why =
        why_wrong_part(layout[p], p == 0, p + 1 == layout.size(), is_loop, has_grid);
    if (!why.empty()) return str(name, ": ", why);
  }
  for (Level level : {Level::Cluster, Level::Warp, Level::Lane}) {
    if (bits_taken(layout, level) < 0) return str(name, " names ", name_of(level), "s twice");
  }
  const bool has_rest = !layout.empty() && layout[0].level == Level::Grid;
  const int64_t covered = covered_by(layout);
  if (!has_rest && covered < count) return str(name, " covers ", covered, " of ", count);
  if (has_rest && count / covered >= kMostBlocks) return name + ": too many blocks";
  if (has_turns_apart(layout)) return name + " has turns in more than one place";
  return "";
}

std::string why_no_vectors(const Kernel& kernel, const std::vector<int>& axes,
                           const Layout& layout, const std::string& name) {
  const int64_t width = extent_of(layout, Level::Vector);
  if (width == 1) return "";
  if (axes.empty()) return name + " has vectors of nothing";
  const Expr& last = kernel.axes[axes.back()].extent;
  return mod(last, width).is_constant(0) ? "" : str(name, ": vectors of ", width, " in ", last);
}

// Where the number of warps is no power of two they are all the block has, and all their results
// are added at once: a digit's end would break that up.
std::string why_wrong_warps(const Layout& layout, const std::string& name, int64_t warps) {
  const int64_t taken = extent_of(layout, Level::Warp);
  if (layout.empty() || is_power_of_two(layout[0].extent)) {
    const bool is_whole = is_power_of_two(warps) || taken == 1;
    return is_whole ? "" : str(name, ": warp ", taken, " of ", warps, " warps: all or one");
  }
  const int64_t extent = layout[0].extent, stride = covered_by(layout) / extent;
  if (layout[0].step > 1 || extent != warps)
    return str(name, ": warp ", extent, " of ", warps, " warps: no power of two, nor all");
  int64_t digit = kChunk;
  while (digit <= stride) digit *= kChunk;
  return stride * power_of_two_from(extent) <= digit
             ? ""
             : str(name, ": warp ", extent, ", ", stride, " elements each: beyond ", digit);
}

// Elements of a block that its warps exchange over these bits, or the blocks of a cluster, where a
// thread has `live` results; a warp whose lanes all have the same gives one, and to blocks one each. What
// is exact is down to one of each row before.
int64_t exchanged(const std::vector<Bit>& bits, bool is_exact, Level level, int64_t live,
                  int64_t warps, int64_t cluster) {
  const auto owns = [](const Bit& bit) { return is_own(bit.level); };
  int64_t elements = 0;
  for (size_t from = 0; from < bits.size(); from++) {
    const bool goes_on = from > 0 && joins(bits[from - 1], bits[from]);
    if (bits[from].level != level || goes_on) continue;
    const size_t before = is_exact ? bits.size() : from;
    const bool of_warps = lanes_agree(bits, before);
    const int64_t of_a_warp = !of_warps ? kLanes : level == Level::Cluster ? cluster : 1;
    const auto end = bits.begin() + static_cast<std::ptrdiff_t>(before);
    elements += (live >> std::count_if(bits.begin(), end, owns)) * warps * of_a_warp;
  }
  return elements;
}

bool is_numbered_by(const Layout& layout, Level level) { return extent_of(layout, level) > 1; }

// What all blocks and warps know of a row's chunks, where a thread does not have all: the largest,
// and the sum of exponentials against it.
int64_t known_of_chunks(const Schedule& s, const Layout& loop) {
  const bool is_shared = is_numbered_by(loop, Level::Warp) ||
                         is_numbered_by(loop, Level::Cluster) ||
                         is_numbered_by(loop, Level::Serial);
  if (!is_shared || covered_by(loop) <= kChunk) return 0;
  return 2 * covered_by(loop) / kChunk * own_elements(s.rows) * extent_of(s.rows, Level::Warp) *
         extent_of(s.rows, Level::Lane);
}

// The shared elements of a step.
int64_t shared_elements(const Kernel& kernel, const Step& step) {
  const Schedule& s = *kernel.schedule;
  const Layout loop = layout_over(kernel, step.inner);
  const DType dtype = accumulator(step.op, kernel.scalars[step.value].dtype);
  const int64_t live = own_elements(loop);
  std::vector<Bit> bits = bits_in_order(loop);
  if (step.op == Op::sum_exp)
    std::erase_if(bits, [](const Bit& bit) { return bit.stride >= kChunk; });
  int64_t elements = 0;
  for (Level level : {Level::Warp, Level::Cluster})
    elements += exchanged(bits, is_exact(step.op, dtype), level, live * own_elements(s.rows),
                          warps_of(s), cluster_of(s));
  return step.op == Op::sum_exp ? 2 * elements + known_of_chunks(s, loop) : elements;
}

int64_t shared_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Reduce || step.inner.empty()) continue;
    const DType dtype = accumulator(step.op, kernel.scalars[step.value].dtype);
    bytes += shared_elements(kernel, step) *
             (size_of(dtype) + (is_arg(step) ? size_of(DType::i64) : 0));
  }
  return bytes;
}

std::string why_wrong_loop(const Kernel& kernel, const std::vector<int>& inner, size_t number) {
  const Schedule& s = *kernel.schedule;
  const Layout& loop = s.loops[number];
  const std::string name = str("loop ", number + 1);
  const bool has_grid = only_stores(kernel) && s.loops.size() == 1;
  if (const std::string why = why_wrong(loop, name, elements_of(kernel, inner), true, has_grid);
      !why.empty())
    return why;
  if (const std::string why = why_wrong_warps(loop, name, warps_of(s)); !why.empty())
    return why;
  for (Level level : {Level::Warp, Level::Lane}) {
    if (bits_taken(loop, level) & bits_taken(s.rows, level))
      return str(name, " takes ", name_of(level), "s that the rows have");
  }
  if (const std::string why = why_no_vectors(kernel, inner, loop, name); !why.empty())
    return why;
  const int64_t registers = own_elements(loop) * own_elements(s.rows);
  if (extent_of(loop, Level::Vector) > 1 && extent_of(s.rows, Level::Vector) > 1)
    return name + ": vectors of rows and of loops";
  if (registers > kMostElements)
    return str(name, ": ", registers, " elements of a thread, at most ", kMostElements);
  return "";
}

// Rows take turns where what they give to columns is added up: by warps first, each of which has a row
// at a time, then by turns.
std::string why_wrong_turns(const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  if (!folds_rows(kernel))
    return is_numbered_by(s.rows, Level::Serial) ? "rows: turns are of rows that fold" : "";
  if (s.outer != kernel.rows - 1)
    return str("outer=", s.outer,
               ": a block has all rows that it folds, so outer=", kernel.rows - 1);
  const bool in_warps = warps_of(s) == extent_of(s.rows, Level::Warp),
             in_order = std::is_sorted(s.rows.begin(), s.rows.end(), [](Part a, Part b) {
               return a.level == Level::Warp && b.level != Level::Warp;
             });
  const int64_t all = extent_of(s.rows, Level::Warp) * extent_of(s.rows, Level::Serial);
  if (!in_warps || !in_order || all != covered_by(s.rows) || all != rows_laid_out(kernel))
    return "rows that fold: warp and serial, no more than there are, and all warps of the "
           "block";
  const bool in_loops = std::any_of(s.loops.begin(), s.loops.end(), [](const Layout& loop) {
    return is_numbered_by(loop, Level::Serial) || is_numbered_by(loop, Level::Cluster);
  });
  if (in_loops) return "loops of rows that fold have no turns and clusters";
  return s.via.empty() ? "" : "via: not of rows that fold";
}

// Where warps meet with what they give to columns, and where sums wait for later turns.
int64_t folded_bytes(const Kernel& kernel) {
  const int64_t turns = extent_of(kernel.schedule->rows, Level::Serial);
  std::map<DType, int64_t> widest;
  int64_t bytes = 0;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Fold) continue;
    const int64_t row = room_for_columns(kernel, step) * size_of(step.dtype);
    widest[step.dtype] = std::max(widest[step.dtype], row);
    for (int64_t n = 1; n < turns; n *= 2) bytes += row;
  }
  for (const auto& [dtype, row] : widest) bytes += row * warps_of(*kernel.schedule);
  return bytes;
}

// Whoever has a part of one of sum_exp's chunks comes to know its sum before the next turn; then
// all come to know all chunks.
std::string why_wrong_step(const Kernel& kernel, const Step& step) {
  if (step.kind != StepKind::Reduce || step.op != Op::sum_exp || step.inner.empty()) return "";
  const Layout loop = layout_over(kernel, step.inner);
  const int64_t chunks = covered_by(loop) / kChunk;
  if (chunks > kChunk) return str("loops have ", chunks, " chunks, sum_exp at most ", kChunk);
  const bool has_turns = is_numbered_by(loop, Level::Serial);
  int64_t blocks = 1;
  for (const Bit& bit : bits_in_order(loop)) {
    const bool of_warp = is_own(bit.level) || bit.level == Level::Lane;
    if (bit.stride < kChunk && has_turns && !of_warp)
      return "loops have turns, and sum_exp takes only those of whole chunks of a warp";
    if (bit.stride >= kChunk && bit.level == Level::Lane)
      return "lanes have whole chunks, which sum_exp does not take";
    if (bit.stride >= kChunk && bit.level == Level::Cluster) blocks *= 2;
  }
  return blocks == 1 || blocks == cluster_of(*kernel.schedule)
             ? ""
             : str("loops have chunks of ", blocks,
                   " blocks of a cluster: sum_exp takes all or one");
}

std::string why_not_asked(const Kernel& kernel) {
  const std::string reason = why_nothing_asked(kernel);
  return reason.empty() ? "" : str("prefetch=", kernel.schedule->prefetch, ": ", reason);
}

}  // namespace

bool can_be_laid_out(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda) return false;
  for (int row = 0; row < kernel.rows; row++) {
    const Expr& extent = kernel.axes[row].extent;
    if (!extent.is_constant() && extent.bounds().low < 1) return false;
  }
  for (const Step& step : kernel.steps) {
    const bool reduces = step.kind == StepKind::Reduce && !has_running_results(step.op);
    if (!reduces && step.kind != StepKind::Store && step.kind != StepKind::Fold) return false;
    if (inner_count(kernel, step).bounds().low < 1) return false;
  }
  return overwrites_in_place(program, kernel);
}

std::string why_illegal_layouts(const Program& program, const Kernel& kernel) {
  if (!can_be_laid_out(program, kernel))
    return "schedule layouts is for reductions and stores on cuda, of sizes from 1 on";
  const Schedule& s = *kernel.schedule;
  const std::vector<std::vector<int>> loops = loops_of(kernel);
  if (s.loops.size() != loops.size())
    return str("schedule layouts has ", s.loops.size(), " loops, not ", loops.size());
  const int64_t most = program.machine.threads / kLanes;
  if (s.resident < 0 || s.resident > program.machine.blocks || s.resident * warps_of(s) > most)
    return str("schedule resident=", s.resident, ": a multiprocessor holds at most ", most,
               " warps and ", program.machine.blocks, " blocks");
  if (s.prefetch < 0)
    return str("schedule prefetch=", s.prefetch, ": what is read later lies ahead");
  if (s.outer < 0 || s.outer > kernel.rows)
    return str("schedule outer=", s.outer, " of ", kernel.rows, " row axes");
  const int64_t rows = rows_laid_out(kernel), cluster = cluster_of(s);
  std::string why = why_wrong(s.rows, "rows", rows, false, true);
  if (why.empty() && cluster > program.machine.cluster)
    why = str("cluster ", cluster, ": ", program.machine.name, " has ",
              program.machine.cluster > 1 ? str("clusters of ", program.machine.cluster)
                                          : "no clusters");
  if (why.empty() && rows / covered_by(s.rows) >=
                         kMostBlocks / cluster / blocks_of_loops(kernel) / outer_rows(kernel))
    why = "rows: too many blocks";
  if (why.empty()) why = why_no_vectors(kernel, axes_laid_out(kernel), s.rows, "rows");
  if (why.empty()) why = why_wrong_turns(kernel);
  for (size_t n = 0; n < loops.size() && why.empty(); n++)
    why = why_wrong_loop(kernel, loops[n], n);
  for (size_t n = 0; n < kernel.steps.size() && why.empty(); n++)
    why = why_wrong_step(kernel, kernel.steps[n]);
  if (why.empty()) why = why_wrong_via(kernel);
  const int64_t shared = why.empty() ? shared_bytes(kernel) : 0,
                staged = why.empty() ? staged_bytes(kernel) + folded_bytes(kernel) : 0;
  if (shared > kDeclaredShared)
    why = str("layouts exchange ", shared, " bytes, more than a kernel may declare");
  else if (shared + staged > std::max(kDeclaredShared, program.machine.block_shared - kBesides))
    why = str("layouts exchange and stage ", shared + staged, " bytes, more than a block has");
  if (why.empty() && s.prefetch > 0) why = why_not_asked(kernel);
  return why.empty() ? "" : "schedule " + why;
}

}  // namespace tiny_compile
