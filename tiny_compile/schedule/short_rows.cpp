// Who holds a row that is no longer than a chunk?
//
//   softmax over 12 of f32[4096,12]      rows grid · warp 4 · lane 8 from 4    loop lane 4 · vector 4
//   over 576 of bf16[4096,576]           rows grid · warp 4                    loop register 8 · lane 32 · vector 4
//   over 77 of bf16[40960,77]            rows grid · warp 4 · lane 2 from 16   loop register 8 · lane 16
//
// A few lanes, or a warp: as few as keep the machine busy, so that few wait for each other, and as many as read
// memory side by side.
#include "tiny_compile/schedule/short_rows.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kSector = 32;    // bytes side by side that a warp reads of long ones
constexpr int64_t kHeld = 32;      // elements of a thread
constexpr int64_t kOddLanes = 16;  // of an odd row, all of a warp if it is long
constexpr int64_t kHalvesOfAccess = 8;
constexpr int64_t kMostOddHalves = 64;  // of a row that lies oddly and is short
constexpr int64_t kFew = 4;             // elements of a thread, or rows

// Elements of a row that lanes go over, if they take `at_a_time` of it.
int64_t gone_over(const Outline& shape, int64_t at_a_time) {
  return ceil_divide(shape.longest, at_a_time) * at_a_time;
}

// Eight halves an access would leave more lanes idle at the end of a row than four: of 384, 128 of 512. (H200, ms:
// softmax's gradient over 320 .0262, .0219; normalize over 576 .0053, .0045; rms_norm's gradient over 384 .0095,
// .0088; draws that nothing was fitted to took .80 to 1.005 of it.)
Deal in_short_accesses(const Outline& shape, Deal d) {
  const int64_t lanes = d.lanes() * d.warps, half = d.vector / 2;
  if (d.vector == kHalvesOfAccess &&
      8 * gone_over(shape, half * lanes) < 7 * gone_over(shape, d.vector * lanes))
    d.vector = half, d.registers *= 2;
  return d;
}

// Rows of 65 to 128 halves that begin anywhere, by a warp each, if it leaves hardly more lanes idle than half of it:
// its pieces of memory are longer. (H200, ms: rms_norm over 127 of bf16[917504,127] with a sum before .3190, .2585;
// but layer norm with gradients over 77 .0384, .0438.)
bool prefers_whole_warps(const Outline& shape, const Along& loops) {
  return loops.bytes == 2 && loops.vector == 1 && shape.longest > kMostOddHalves &&
         shape.longest <= kMostOdd && !shape.costly &&
         8 * gone_over(shape, kLanes) <= 9 * gone_over(shape, kOddLanes);
}

}  // namespace

int64_t threads_of(const Outline& shape, const Deal& d) {
  return shape.rows * d.lanes() * d.warps * d.cluster;
}

// Rows in registers, by as few lanes as can and keep the machine busy. But where each element is
// written by itself, a warp shall not write to 32 lines at a time; nor shall it come back to the lines
// of as many long rows for each access, when others have driven them out of L1. (Standardise over
// 32 of f32: 239 us, by four lanes a row 125.)
Deal hold_rows(const Machine& machine, const Outline& shape, const Along& loops, bool beside) {
  const int64_t padded = std::max(loops.vector, power_of_two_from(shape.longest)),
                some = (shape.words > 1 ? 2 : 1) * kHeld / power_of_two_from(shape.words);
  const bool is_whole = prefers_whole_warps(shape, loops);
  const int64_t least_odd = padded <= kLanes || is_whole ? kHeldOdd / 2 : kHeldOdd;
  const bool is_apart =
      !beside && loops.vector > 1 && shape.longest * loops.bytes >= 2 * kSector;
  const int64_t least = is_apart ? std::min(padded, kSideBySide) / loops.vector : 1;
  const auto of_each = [&](int64_t held) {
    const int64_t lanes = std::clamp<int64_t>(padded / held, least, kLanes);
    Deal d;
    d.loops_first = true;
    d.vector = loops.vector;
    d.row_lanes = kLanes / lanes;
    d.warps = std::max<int64_t>(1, padded / (held * lanes));
    d.registers = padded / (d.vector * lanes * d.warps);
    return in_blocks_of(kRowWarps, d);
  };
  const int64_t odd_lanes =
      is_whole || (padded > kMostOdd && !shape.costly) ? kLanes : kOddLanes;
  int64_t held = loops.vector == 1 && shape.writes
                     ? std::clamp(padded / odd_lanes, least_odd, std::max(kHeldOdd, some))
                     : std::max(loops.vector, some);
  Deal d = of_each(held);
  while (held > loops.vector && of_each(held / 2).warps == 1 &&
         threads_of(shape, d) < threads_to_fill(machine))
    d = of_each(held /= 2);
  return loops.bytes == 2 ? in_short_accesses(shape, d) : d;
}

// Threads that have no more than a few elements each end sooner than others start: each has several rows.
Deal hold_windows(const Machine& machine, const Outline& shape, const Along& loops,
                  bool beside) {
  Deal d = hold_rows(machine, shape, loops, beside);
  while (d.registers * d.vector <= kFew && d.row_registers < kFew &&
         threads_of(shape, d) >= 2 * d.row_registers * threads_to_fill(machine))
    d.row_registers *= 2;
  return d;
}

}  // namespace tiny_compile
