// How large are the panels and blocks of a CPU's product? Registers hold the sums of 12 rows by two vectors of
// AVX-512; a block has some of such panels, as many as give each core a few blocks, and what a core has near
// decides what stays packed there.
//
//   f32 4096 x 512 x 1024, cpu:16   tiles down=12 across=32 panels_down=20 panels_across=8 kept=1
//   f32 128 x 64 x 10               tiles down=10 across=32 ..: a panel of a few columns becomes rows
#include "tiny_compile/schedule/panel_tiles.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/dot_operands.h"
#include "tiny_compile/loops/panel_shape.h"
#include "tiny_compile/schedule/rates.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostRows = 240, kMostColumns = 1024;  // of a block; columns: bytes
constexpr int64_t kDepth = 512;                          // steps that a tile goes on for
constexpr int64_t kWorkAlone = 1 << 18;    // products, some 5 us, that one thread does alone
constexpr int64_t kMostCounted = 1 << 20;  // of a size that may be larger: blocks stay the same
constexpr int64_t kPage = 4096;            // rows so far apart share a set of L1
constexpr int64_t kFewColumns = 512;  // bytes of a row: not worth bringing panels together for
constexpr int64_t kToPack = 8, kToStore = 16;  // products that take as long as an element
constexpr double kClock = 3.8e9;               // of a core that multiplies
constexpr double kSums = 8;  // vectors that hide how long a sum takes: four clocks, two a clock
constexpr double kFar = 1.3;      // over the time of rows that lie near
constexpr double kSpilled = 1.5;  // of a sum's time more, where it has no register
// Products that take as long as an element that is packed, is stored, or has its sum between blocks of depth.
constexpr double kPacked = 8, kStored = 3, kAgain = 4;

struct Extents {
  int64_t m, n, k, batches, bytes;  // at most; bytes of an element
};

int64_t most(const Expr& count) {
  return count.is_constant() ? count.constant() : std::min(count.bounds().high, kMostCounted);
}

Extents extents_of(const Kernel& kernel, const DotAxes& axes) {
  const auto all = [&](const std::vector<int>& list) { return most(count_of(kernel, list)); };
  return {all(axes.rows), all(axes.columns), all(axes.depth), all(axes.batch),
          size_of(sum_type(kernel, axes))};
}

// Rows of a tile of two vectors at most: 12 with what they are multiplied with fill the 32 registers of AVX-512, 6
// the 16 of AVX.
int64_t most_down(const Machine& machine) {
  return machine.vector == 64 ? 12 : machine.vector == 32 ? 6 : 4;
}

// Such that runs of so many rows (0: none) are whole panels, or panels whole runs, else such that the last panel is
// nearly full.
int64_t rows_of_tile(int64_t rows, int64_t run, int64_t most) {
  for (int64_t r = std::min(most, rows); run > 1 && 2 * r > most; r--) {
    if (run % r == 0 || r % run == 0) return r;
  }
  const int64_t tiles = std::max<int64_t>(1, ceil_divide(rows, most));
  return std::max<int64_t>(1, ceil_divide(rows, tiles));
}

// Such that the last one of so many columns is nearly full.
int64_t vectors_of_tile(int64_t columns, int64_t lanes) {
  return columns <= 8 * lanes && ceil_divide(columns, lanes) % 2 == 1 ? 1 : 2;
}

// Pixels of a line, or whatever the rows' packing runs along: a panel is a part of it, or some of it are a panel.
int64_t run_of(const DotView& view) {
  if (view.lists[0].size() < 2) return 0;
  const Expr& extent = view.kernel.axes[view.lists[0].back()].extent;
  return extent.is_constant() ? extent.constant() : 0;
}

// Products of a block, and what takes as long.
int64_t work_of(const Extents& all, int64_t block_rows, int64_t block_columns) {
  const int64_t rows = std::min(block_rows, all.m), columns = std::min(block_columns, all.n);
  return block_rows * block_columns * all.k + kToPack * (rows + columns) * all.k +
         kToStore * rows * columns;
}

// Several rows not all in one set of L1, or few columns to read rows side by side for.
bool is_near(const Machine& machine, const Extents& all, const Strided& rows) {
  const int64_t ways = machine.l1 / kPage;
  const bool in_one_set = rows.step == 1 && rows.lane * all.bytes % kPage == 0,
             is_short = rows.step != 1 && rows.step * all.bytes % kPage != 0 &&
                        all.n <= kFewColumns / all.bytes;
  return rows.step == 1 ? !in_one_set || ways >= most_down(machine) : is_short;
}

// Clocks of a tile's step: two vectors multiplied and two read in each, a row's element in all lanes; no
// fewer than the sums need.
double clocks_of_step(const Machine& machine, const Schedule& s, int64_t lanes) {
  const double vectors = as_double(s.across) / as_double(lanes), sums = s.down * vectors,
               registers = machine.vector == 64 ? 32 : 16;
  const double beyond = std::max(0.0, sums + vectors + 1 - registers);
  return std::max({sums, kSums, s.down + vectors}) / 2 * (1 + kSpilled * beyond / sums);
}

}  // namespace

double time_of_panels(const Program& program, const Kernel& kernel) {
  const Machine& machine = program.machine;
  const Schedule& s = *kernel.schedule;
  const PanelShape shape = panel_shape(kernel);
  const int64_t m = shape.rows.constant(), n = shape.columns.constant(),
                k = shape.depth.constant(), batches = shape.batches.constant(),
                row_blocks = shape.row_blocks.constant(),
                column_blocks = shape.column_blocks.constant(),
                units = shape.units().constant(), lanes = machine.vector / size_of(shape.type);
  if (units == 0) return 0;
  const auto lie = rows_as_they_lie(program, kernel, shape.axes);
  const bool is_far =
      !s.packs_rows && lie && !is_near(machine, extents_of(kernel, shape.axes), *lie);
  const double tiles = as_double(ceil_divide(m, s.down) * ceil_divide(n, s.across) * batches),
               clocks = tiles * as_double(k) * clocks_of_step(machine, s, lanes) *
                        (is_far ? kFar : 1),
               packed = as_double(batches * k) *
                        (as_double(n) * (s.kept >= 1 ? 1 : as_double(row_blocks)) +
                         (s.packs_rows ? as_double(m) : 0) *
                             (s.kept == 2 ? 1 : as_double(column_blocks))),
               stored = as_double(batches * m * n) *
                        (kStored + kAgain * as_double(shape.depth_blocks - 1)),
               beside = (kPacked * packed + stored) / (2 * as_double(lanes));
  const int64_t shares = ceil_divide(units, s.grain),
                of_core = ceil_divide(shares, machine.cores) * s.grain;
  return (clocks + beside) / kClock * as_double(std::min(of_core, units)) / as_double(units);
}

Schedule panel_tiles(const Program& program, const Kernel& kernel) {
  const Machine& machine = program.machine;
  const DotAxes axes = dot_axes(kernel);
  const Extents all = extents_of(kernel, axes);
  const DotView rows_view = left_view(kernel, axes);
  const auto lie = rows_as_they_lie(program, kernel, axes);
  const int64_t near = near_bytes(machine) / 4,  // elements of an operand that stay by a core
      enough = 4 * machine.cores,                // blocks: more are no better dealt out
      lanes = machine.vector / all.bytes,
                down = rows_of_tile(all.m, run_of(rows_view), most_down(machine)),
                across = vectors_of_tile(all.n, lanes) * lanes,
                row_tiles = ceil_divide(all.m, down), column_tiles = ceil_divide(all.n, across),
                most_tiles = std::max<int64_t>(kMostColumns / (across * all.bytes), 1),
                depth_blocks = std::max<int64_t>(1, ceil_divide(all.k, kDepth));
  const bool stays = all.k * across <= near,
             all_rows_stay = stays && row_tiles * down * all.k <= near;
  const int64_t staying = stays ? near / std::max<int64_t>(all.k * across, 1) : most_tiles;
  int64_t rows = std::clamp<int64_t>(row_tiles, 1, kMostRows / down),
          columns = std::clamp<int64_t>(column_tiles, 1, std::min(staying, most_tiles));
  const auto work = [&] { return work_of(all, rows * down, columns * across); };
  const auto blocks = [&] {
    return all.batches * ceil_divide(all.m, rows * down) * ceil_divide(all.n, columns * across);
  };
  while (blocks() < enough && work() > 2 * kWorkAlone && rows * columns > 1) {
    const bool cut_rows = columns == 1 || (rows > 1 && (!all_rows_stay || rows > 2 * columns));
    int64_t& fewer = cut_rows ? rows : columns;
    fewer = ceil_divide(fewer, 2);
  }
  Schedule s{.strategy = Strategy::Tiles};
  s.down = static_cast<int>(down), s.across = static_cast<int>(across);
  s.panels_down = static_cast<int>(rows), s.panels_across = static_cast<int>(columns);
  s.depth = std::max<int64_t>(1, ceil_divide(all.k, depth_blocks));
  s.packs_rows = !lie || !is_near(machine, all, *lie);
  const bool is_counted = count_of(kernel, axes.rows).is_constant();
  s.kept = !stays ? 0 : all_rows_stay && s.packs_rows && is_counted ? 2 : 1;
  s.grain = ceil_divide(kWorkAlone, std::max<int64_t>(work(), 1));
  return s;
}

}  // namespace tiny_compile
