// Which rows does a block have, that what lies along them is read in whole pieces of memory?
//
//   rows(i0: 4096) { r0 = sum(j0: 256) load x[i0 + j0*4096]; store y[i0*256 + j0] for .. = .. }
//   =>  schedule layouts rows grid · warp 8 · lane 2 from 16   loop register 16 · lane 16
//       via load 1 rows lane 4 · vector 4   loop register 4 · warp 8 · lane 8 from 4   padding 1
//
// Sixteen rows of f32 are 64 bytes of each column. Small blocks are better than whole lines:
// while one waits for its threads, others read.
#include "tiny_compile/schedule/crossed.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/legal_via.h"
#include "tiny_compile/schedule/accesses.h"
#include "tiny_compile/schedule/outline.h"
#include "tiny_compile/schedule/sides.h"

namespace tiny_compile {
namespace {

constexpr int64_t kPiece = 128,
                  kSector = 32;            // bytes of memory, side by side: at most, at least
constexpr int64_t kBlockWarps = 8;         // twice as many where they make a sector
constexpr int64_t kMostShared = 40 << 10;  // bytes of a block, where that is enough
constexpr int kPieces[] = {1, 4, 8};  // two of them are there at a time: two would save nothing

// Bytes of a block: five, three, two or one of which fit a multiprocessor.
std::vector<int64_t> sizes_of_blocks(const Machine& machine) {
  return {kMostShared, machine.block_shared / 3, machine.block_shared / 2,
          machine.block_shared};
}

// Each access of rows and elements goes along one or the other.
bool each_lies_along(const Program& program, const Kernel& kernel, int row,
                     const std::vector<int>& inner) {
  const auto goes_along = [&](const Expr& index, int buffer, bool is_chosen, bool can_go_by) {
    return !depends_on_any(kernel, index, inner) || !depends_on_any(kernel, index, {row}) ||
           runs_along(kernel, index, inner.back()) ||
           (can_go_by && runs_along(kernel, index, row)) ||
           (!is_chosen && lies_along(program, kernel, inner, index, buffer));
  };
  return std::all_of(kernel.scalars.begin(), kernel.scalars.end(),
                     [&](const Scalar& s) {
                       return s.kind != ScalarKind::Load ||
                              goes_along(s.index, s.buffer, !s.operands.empty(),
                                         chosen_by_indices(kernel, s));
                     }) &&
         std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
           return step.kind != StepKind::Store ||
                  goes_along(step.index, step.buffer, false, true);
         });
}

// What goes by way of shared memory, along the rows or along the loops, by all warps of the
// block. Along rows, which are few, vectors leave more lines to the lanes of a warp; along
// loops words are in different banks.
std::vector<Via> via_of(const Schedule& s, const Side& side, bool along_rows, int pieces) {
  const int64_t rows = covered_by(of_block(s.rows)), loops = covered_by(of_block(s.loops[0])),
                warps = warps_of(s), each = rows * loops / (warps * kLanes),
                neighbours = along_rows ? rows : loops, lines = along_rows ? loops : rows,
                bytes = along_rows ? kAccessBytes : kWord;
  std::vector<Via> via = side.accesses;
  for (size_t n = 0; n < via.size(); n++) {
    const int64_t widest = std::max<int64_t>(1, bytes / side.sizes[n]),
                  vector = std::min({side.vector, widest, each, neighbours});
    const Dealt d = dealt(neighbours, lines, vector, warps, along_rows ? 1 : pieces);
    via[n].rows = along_rows ? d.neighbours : d.lines;
    via[n].loop = along_rows ? d.lines : d.neighbours;
    via[n].padding = side.sizes[n] == 2 ? 2 : 1;
    via[n].pieces = pieces;
  }
  return via;
}

std::optional<Schedule> staged(const Program& program, Kernel kernel, const Deal& deal,
                               const Side& side, bool along_rows, int pieces, int64_t most) {
  kernel.schedule = laid_out(program, kernel, deal);
  kernel.schedule->via = via_of(*kernel.schedule, side, along_rows, pieces);
  const bool fits =
      staged_bytes(kernel) <= most && why_illegal_layouts(program, kernel).empty();
  return fits ? kernel.schedule : std::nullopt;
}

// Of blocks of so many warps, that with the most rows that has room for what they read.
std::optional<Schedule> of_most_rows(const Program& program, const Kernel& kernel, Deal deal,
                                     const Side& side, int64_t least, int pieces, int64_t warps,
                                     int64_t most) {
  const int64_t size = *std::min_element(side.sizes.begin(), side.sizes.end());
  for (int64_t rows = kPiece / size; rows * size >= least; rows /= 2) {
    deal.row_warps = std::max<int64_t>(1, rows / deal.row_lanes);
    if (deal.row_warps * deal.warps > warps) continue;
    if (const auto s = staged(program, kernel, deal, side, true, pieces, most)) return s;
  }
  return std::nullopt;
}

// What lies along the last row axis, or along the loops: that goes by way of shared memory where
// lanes go along the other.
Side along_rows(const Program& program, const Kernel& kernel) {
  return side_of(program, kernel, kernel.rows - 1, loops_of(kernel)[0]);
}

Side along_loops(const Program& program, const Kernel& kernel) {
  return side_of(program, kernel, loops_of(kernel)[0].back(), {kernel.rows - 1});
}

// Nothing where some array lies along neither, or nothing has to be staged.
std::optional<Side> staged_side(const Program& program, const Kernel& kernel, bool of_rows) {
  if (!each_lies_along(program, kernel, kernel.rows - 1, loops_of(kernel)[0]))
    return std::nullopt;
  Side side = of_rows ? along_rows(program, kernel) : along_loops(program, kernel);
  return side.accesses.empty() ? std::nullopt : std::optional(std::move(side));
}

}  // namespace

// At least two sectors of each piece where a third of a multiprocessor's memory is enough for it, and else one. (H200,
// layer_norm of f32[65536,1024], transposed: .193 ms by one, .160 by two.) Pieces that begin anywhere lie in one
// sector more: then rather two in any case.
std::optional<Schedule> crossed_rows(const Program& program, const Kernel& kernel,
                                     const Deal& deal) {
  const std::optional<Side> side = staged_side(program, kernel, true);
  if (!side) return std::nullopt;
  const bool begins_anywhere = side->vector == 1 && along_loops(program, kernel).vector > 1;
  const auto of_at_least = [&](int64_t least, int64_t most,
                               int pieces) -> std::optional<Schedule> {
    for (int64_t warps : {kBlockWarps, 2 * kBlockWarps})
      if (const auto s = of_most_rows(program, kernel, deal, *side, least, pieces, warps, most))
        return s;
    return std::nullopt;
  };
  const int64_t third = program.machine.block_shared / 3,
                busy = 2 * program.machine.multiprocessors;  // blocks
  const auto fills = [&](const Schedule& s) {
    return row_count(kernel).constant() >= busy * covered_by(of_block(s.rows));
  };
  if (!begins_anywhere)
    if (const auto s = of_at_least(2 * kSector, third, 1); s && fills(*s)) return s;
  for (int64_t most : sizes_of_blocks(program.machine)) {
    for (int64_t least : {begins_anywhere ? 2 * kSector : kSector, kSector}) {
      for (int pieces : kPieces)
        if (const auto s = of_at_least(least, most, pieces)) return s;
    }
  }
  return std::nullopt;
}

std::optional<Schedule> crossed_long_rows(const Program& program, const Kernel& kernel,
                                          const Deal& chunk) {
  const std::optional<Side> side = staged_side(program, kernel, true);
  if (!side) return std::nullopt;
  const int64_t chunks = power_of_two_from(
                    ceil_divide(elements_of(kernel, loops_of(kernel)[0]), kChunk)),
                cluster = std::min(program.machine.cluster, chunks);
  Deal deal = chunk;
  for (int64_t least : {kSector, kSector / 2}) {  // of which another block reads the other half
    for (deal.cluster = 1; deal.cluster <= cluster; deal.cluster *= 2) {
      deal.warps = chunks / deal.cluster;
      if (const auto s = of_most_rows(program, kernel, deal, *side, least, 1, 2 * kBlockWarps,
                                      program.machine.block_shared / 2))
        return s;
    }
  }
  return std::nullopt;
}

std::optional<Schedule> crossed_columns(const Program& program, const Kernel& kernel,
                                        const Deal& deal) {
  const std::optional<Side> side = staged_side(program, kernel, false);
  if (!side) return std::nullopt;
  for (int64_t most : sizes_of_blocks(program.machine)) {
    for (Deal d = deal; d.row_warps > 0; d.row_warps /= 2) {
      for (int pieces : kPieces)
        if (const auto s = staged(program, kernel, d, *side, false, pieces, most)) return s;
    }
  }
  return std::nullopt;
}

}  // namespace tiny_compile
