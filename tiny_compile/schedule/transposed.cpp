// What if loads and stores run along different axes? Neighbouring threads should touch neighbouring
// elements on both sides, so one side goes by way of shared memory: that which has fewer bytes.
//
//   rows(i0: 777, i1: 1000) { store z[i0*1000 + i1] = add(load x[i0 + i1*777], load y[i0*1000 + i1]) }
//   =>  rows(i0: 777) { store z[i0*1000 + j0] for (j0: 1000) = .. }
//       schedule layouts rows grid · register 4 · warp 8 · lane 2   loop grid · lane 16 from 2 · vector 4
//                via load 1 rows register 2 · lane 32   loop register 8 · warp 8   padding 1
//
// A tile's sides are pieces of 256 bytes (halves: 128), which memory reads faster than shorter ones. A row of
// 65 keeps a column's elements in different banks.
#include "tiny_compile/schedule/transposed.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/branches.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/legal_via.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/schedule/outline.h"
#include "tiny_compile/schedule/sides.h"
#include "tiny_compile/schedule/sized_layouts.h"

namespace tiny_compile {
namespace {

constexpr int64_t kWarps = 8, kSmallWarps = 4;       // of a block
constexpr int64_t kPack = 4;                         // elements, at least
constexpr int64_t kTile = 64, kSmallTile = 32;       // a tile's sides
constexpr int64_t kLeastSide = 8;                    // of rows: of which a tile has all
constexpr int64_t kMostElements = int64_t{1} << 40;  // of sizes without a bound
constexpr int64_t kMostShared = 40 << 10;            // bytes of a block's tiles

// The last axes, from the first of as many as a tile's side has, if stores go on from one to the next.
int first_loop(const Kernel& kernel) {
  int64_t elements = 1;
  for (int axis = kernel.rows - 1; axis > 0; axis--) {
    const Expr symbol = kernel.axes[axis].symbol();
    const bool goes_on = std::all_of(
        kernel.steps.begin(), kernel.steps.end(),
        [&](const Step& step) { return coefficient(step.index, symbol) == elements; });
    if (!goes_on) return kernel.rows;
    elements *= std::min(kernel.axes[axis].extent.bounds().high, kMostElements);
    if (elements >= kSmallTile) return axis;
  }
  return kernel.rows;
}

// The row axis along which a load runs while it does not along the loops to be; -1: none. (A concat whose parts
// take long to compute has a branch for each as points; a tile would compute all parts for each element.)
int across_axis(const Kernel& kernel, const std::vector<int>& loops) {
  const bool has_branches = has_branch(costly_branches(kernel));
  for (const Scalar& load : kernel.scalars) {
    if (!(has_branches ? is_plain(load) : chosen_by_indices(kernel, load)) ||
        !depends_on_any(kernel, load.index, loops) ||
        runs_along(kernel, load.index, loops.back()))
      continue;
    for (int row = 0; row < loops[0]; row++) {
      const bool is_large = kernel.axes[row].extent.bounds().high >= kLeastSide;
      if (is_large && runs_along(kernel, load.index, row)) return row;
    }
  }
  return -1;
}

// The last axes as loops, and the rows' last the one that is transposed.
Kernel as_rows(Kernel kernel, int transposed, const std::vector<int>& loops) {
  std::rotate(kernel.axes.begin() + transposed, kernel.axes.begin() + transposed + 1,
              kernel.axes.begin() + loops[0]);
  kernel.rows = loops[0];
  for (Step& step : kernel.steps) step.inner = loops;
  return normalize(std::move(kernel));
}

// A block of so many rows and elements.
struct Block {
  int64_t rows = 0, loops = 0, warps = kWarps;
};

Schedule schedule_of(const Block& block, const Side& rows, const Side& loops, bool is_of_rows) {
  const int64_t each = block.rows * block.loops / (block.warps * kLanes);  // of a thread
  const Dealt row_wise =
                  dealt(block.rows, block.loops, std::min(rows.vector, each), block.warps),
              loop_wise =
                  dealt(block.loops, block.rows, std::min(loops.vector, each), block.warps);
  const Layout &own_rows = is_of_rows ? row_wise.neighbours : loop_wise.lines,
               &own_loop = is_of_rows ? row_wise.lines : loop_wise.neighbours;
  const Side& by_way = is_of_rows ? loops : rows;
  Schedule s;
  s.strategy = Strategy::Layouts;
  s.rows = {{Level::Grid}};
  s.loops = {{{Level::Grid}}};
  s.rows.insert(s.rows.end(), own_rows.begin(), own_rows.end());
  s.loops[0].insert(s.loops[0].end(), own_loop.begin(), own_loop.end());
  s.via = by_way.accesses;
  for (size_t n = 0; n < s.via.size(); n++) {
    s.via[n].rows = is_of_rows ? loop_wise.lines : row_wise.neighbours;
    s.via[n].loop = is_of_rows ? loop_wise.neighbours : row_wise.lines;
    s.via[n].padding = by_way.sizes[n] == 2 ? 2 : 1;
  }
  return s;
}

bool computes_costly(const Kernel& kernel) {
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(), [](const Scalar& s) {
    return s.kind == ScalarKind::Apply && is_costly(s);
  });
}

// Of tiles with that side: small ones where they cover a fifth less; beside few rows wider ones.
Block block_of(const Kernel& kernel, int64_t most, int64_t warps) {
  const auto side = [](int64_t extent, int64_t tile) {
    if (extent > kMostElements) return tile;
    if (extent < kSmallTile) return power_of_two_from(extent);
    const auto covered = [&](int64_t by) { return ceil_divide(extent, by) * by; };
    while (tile > kSmallTile && 5 * covered(kSmallTile) <= 4 * covered(tile)) tile /= 2;
    return tile;
  };
  const int64_t rows = side(kernel.axes[kernel.rows - 1].extent.bounds().high, most),
                wider = std::max<int64_t>(1, kSmallTile / rows),
                elements = elements_of(kernel, loops_of(kernel)[0]);
  return {rows, side(elements, most * wider), warps};
}

// Whether each multiprocessor has one of such blocks.
bool fills(const Machine& machine, const Kernel& kernel, const Block& block) {
  int64_t blocks = ceil_divide(elements_of(kernel, loops_of(kernel)[0]), block.loops);
  for (int row = 0; row < kernel.rows && blocks < kMostElements; row++)
    blocks *= ceil_divide(kernel.axes[row].extent.bounds().high,
                          row < kernel.rows - 1 ? 1 : block.rows);
  return blocks >= blocks_to_fill(machine);
}

// Costly elements are computed where they are stored, and blocks are small, so that some compute while
// others read: packs of halves are enough for that in large ones. (Chains over transposed f32, bf16 and f16 of
// odd rows .86 to .94 of the time that large blocks take, of too few blocks for the machine .76; H200.) What
// shared memory has no room for in small tiles either is read as it lies.
Schedule schedule_of(const Machine& machine, Kernel kernel, const Side& rows,
                     const Side& loops) {
  const bool has_halves = rows.has_small() || loops.has_small(),
             is_costly = computes_costly(kernel),
             is_few = !fills(machine, kernel, block_of(kernel, kTile, kWarps)),
             in_packs = has_halves && std::min(rows.vector, loops.vector) >= kPack,
             is_small = is_costly && (is_few || !in_packs),
             is_of_rows =
                 rows.bytes > loops.bytes ||
                 (rows.bytes == loops.bytes && !is_costly && (has_halves || loops.loads == 0));
  for (int64_t most = is_small ? kSmallTile : kTile; most >= kSmallTile; most /= 2) {
    const int64_t warps = is_small && !is_few ? kSmallWarps : kWarps;
    kernel.schedule = schedule_of(block_of(kernel, most, warps), rows, loops, is_of_rows);
    if (staged_bytes(kernel) <= kMostShared) break;
  }
  while (staged_bytes(kernel) > kMostShared) kernel.schedule->via.pop_back();
  kernel.schedule->outer = kernel.rows - 1;
  return *kernel.schedule;
}

// The schedule for all sizes but 0; nothing is left of the kernel then.
std::optional<Kernel> for_sizes_from_one(const Program& program, Kernel rows) {
  for (std::vector<SizeRange>& box : size_boxes(rows))
    rows.sized.push_back({std::move(box), *rows.schedule});
  rows.schedule.reset();
  return why_wrong_sizes(program, rows).empty() ? std::optional(std::move(rows)) : std::nullopt;
}

}  // namespace

std::optional<Kernel> transposed(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || kernel.rows < 2 || is_sequential(kernel) ||
      row_count(kernel).is_constant(0))
    return std::nullopt;
  std::vector<int> loops(static_cast<size_t>(kernel.rows - first_loop(kernel)));
  std::iota(loops.begin(), loops.end(), first_loop(kernel));
  const int axis = loops.empty() ? -1 : across_axis(kernel, loops);
  if (axis < 0) return std::nullopt;
  Kernel rows = as_rows(kernel, axis, loops);
  const int last = rows.rows - 1;
  loops = rows.steps[0].inner;
  rows.schedule = schedule_of(program.machine, rows, side_of(program, rows, last, loops),
                              side_of(program, rows, loops.back(), {last}));
  if (has_symbolic_sizes(rows)) return for_sizes_from_one(program, std::move(rows));
  if (!can_be_laid_out(program, rows) || !why_illegal_layouts(program, rows).empty())
    return std::nullopt;
  return rows;
}

}  // namespace tiny_compile
