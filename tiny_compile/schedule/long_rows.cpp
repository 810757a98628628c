// Who holds a row that is longer than a chunk?
//
//   softmax over 4096 of f32[4096,..]      loop warp 4 · register 8 · lane 32 · vector 4
//   over 50257 of f32[4096,..]             loop warp 7 · cluster 8 · register 32 · lane 32
//   over 200000 of f32[200,..]             loop serial 2 · cluster 8 · warp 16 · register 8 · lane 32 · vector 4
//
// A warp has a chunk of it in registers, so that a row is read once; more than a block's warps hold is a
// cluster's, and more than a cluster holds is gone over in turns.
#include "tiny_compile/schedule/long_rows.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kHeld = 32;            // elements of a thread, of a row that is held
constexpr int64_t kBlockWarps = 8;       // more chunks than these are a cluster's
constexpr int64_t kByOne = 12;           // chunks of a block that holds a row
constexpr int64_t kMostExchanged = 16;   // of a row in turns: blocks times its long reductions
constexpr int64_t kInTurns = 2;          // blocks of 16 warps that a multiprocessor has of them
constexpr int64_t kWaiting = 5;          // blocks of a cluster
constexpr int64_t kOtherRegisters = 32;  // of a thread of theirs, beside what it holds
constexpr int64_t kForOneValue = 48;     // that a thread of theirs needs, which holds one,
constexpr int64_t kForExponentials = 56;  // or adds up exponentials
constexpr int64_t kWaitingDivided = 4;    // that divide by one number: it takes registers

// Blocks of a cluster that a multiprocessor has: some wait while others compute. Where threads hold
// several values of an element, as many as have registers for them: what is spilled costs more than
// a block that waits is worth.
int64_t waiting_blocks(const Machine& machine, const Outline& shape, const Deal& d) {
  const int64_t threads = kLanes * d.warps,
                most = std::min(shape.divides ? kWaitingDivided : kWaiting,
                                machine.threads / threads);
  const int64_t each = shape.streams > 1    ? kOtherRegisters + shape.words * kHeld
                       : shape.exponentials ? kForExponentials
                                            : kForOneValue;
  return std::clamp<int64_t>(machine.registers / (threads * each), 1, most);
}

}  // namespace

Deal hold_chunks(const Along& loops, int64_t warps) {
  Deal d;
  d.loops_first = true;
  d.vector = loops.vector;
  d.registers = kChunk / (kLanes * d.vector);
  d.warps = warps;
  return d;
}

// H200, ms, one block and two: layer norm of bf16[4096,12288] .0572, .0535, of 14336 .0637, .0639, of 16384 .1008,
// .0767; softmax .0615, .0643; .0821, .0761; .0879, .0822; of f32[700,16384] .0287, .0253 and .0285, .0260.
Deal hold_by_two(const Machine& machine, const Along& loops, int64_t chunks) {
  const bool is_two = chunks > kByOne && chunks % 2 == 0 && machine.cluster > 1;
  Deal d = hold_chunks(loops, is_two ? chunks / 2 : chunks);
  if (is_two) d.cluster = 2;
  return d;
}

// Longer than a cluster holds: in turns, and read again. A cluster has so many blocks that the rows which
// are gone over at a time stay in L2 until then, and that half of the multiprocessors have one; not more than
// their exchanges are worth. (H200, softmax of f32[200,200000] by 1, 2, 4, 8 blocks: .217, .223, .204, .161
// ms; of bf16[140,300000] .237, .189, .160, .163; batch norm of f32[1024,1024,14,14] .232, .218, .196 by 1,
// 2, 4; group norm of f32[16,64,112,112], whose rows stay there anyhow, .061, .072 by 1, 2; batch norm with
// gradients of f16[184,320,28,28], five reductions, .294, .249, .303, .387.)
Deal hold_in_turns(const Machine& machine, const Outline& shape, const Along& loops) {
  Deal d = hold_chunks(loops, kMostOfRow);
  const int64_t turns = power_of_two_from(ceil_divide(shape.longest, kChunk)) / kMostOfRow,
                worth = kMostExchanged / std::max<int64_t>(1, shape.long_reductions),
                most = std::min({machine.cluster, turns, worth});
  const auto is_near = [&] {
    const int64_t at_a_time = kInTurns * machine.multiprocessors / d.cluster;
    return std::min(shape.rows, at_a_time) * shape.bytes <= machine.l2 / 6 * 5;
  };
  while (2 * d.cluster <= most &&
         (2 * shape.rows * d.cluster <= machine.multiprocessors || !is_near()))
    d.cluster *= 2;
  // Blocks that share a row, half of it at a time, hold all of it if twice as many may. (H200, ms: standardise's
  // gradient of f32[512,49152] .8363, .4767; group norm of 65025 .1667, .1467.)
  if (d.cluster > 1 && 2 * d.cluster == turns && turns <= most) d.cluster = turns;
  return d;
}

Deal hold_in_clusters(const Machine& machine, const Outline& shape, const Along& loops) {
  const int64_t chunks = ceil_divide(shape.longest, kChunk);
  Deal d = hold_chunks(loops, chunks);
  while (2 * d.cluster <= machine.cluster && chunks > kBlockWarps * d.cluster) d.cluster *= 2;
  d.warps = ceil_divide(chunks, d.cluster);
  if (d.warps > kMostOfRow) return hold_in_turns(machine, shape, loops);
  d.asks_ahead = d.cluster > 1;
  if (d.asks_ahead) d.resident = waiting_blocks(machine, shape, d);
  return d;
}

Deal hold_alone(const Machine& machine, const Along& loops, int64_t chunks) {
  Deal d = hold_chunks(loops, chunks);
  while (2 * d.cluster <= std::min(machine.cluster, chunks)) d.cluster *= 2;
  d.warps = power_of_two_from(ceil_divide(chunks, d.cluster));
  return d;
}

}  // namespace tiny_compile
