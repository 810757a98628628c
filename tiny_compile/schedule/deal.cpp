// A layout names a level's part of an index, the highest bits first:
//
//   Deal{.row_warps = 2, .row_lanes = 8, .warps = 4, .registers = 64}
//   =>  rows grid · warp 2 from 4 · lane 8     loop register 64 · warp 4 · lane 4 from 8
#include "tiny_compile/schedule/deal.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/asked_ahead.h"
#include "tiny_compile/loops/laid_out.h"

namespace tiny_compile {
namespace {

Layout rows_of(const Deal& d, int64_t rows) {
  const int64_t lanes = std::min(d.row_lanes, power_of_two_from(rows)),
                left = power_of_two_from(ceil_divide(rows, lanes * d.row_vector));
  Layout layout = {{Level::Grid}};
  add_part(layout, Level::Register, d.row_registers);
  add_part(layout, Level::Warp, std::min(d.row_warps, left), d.warps_of_row());
  add_part(layout, Level::Lane, lanes, d.loops_first ? d.lanes() : 1);
  add_part(layout, Level::Vector, d.row_vector);
  return layout;
}

// Several chunks at a time: of a cluster's blocks, of a block's warps, and what is left in turns; within a
// chunk turns as well, if there are none of chunks.
Layout loop_of_chunks(const Deal& d, int64_t count) {
  const int64_t chunks = power_of_two_from(ceil_divide(count, kChunk)),
                cluster = std::min(d.cluster, chunks),
                of_warps = std::min(d.chunks, chunks / cluster),
                turns = chunks / (cluster * of_warps), each = kChunk / (d.lanes() * d.warps),
                registers = turns > 1 && d.warps > 1 ? each : std::min(each, d.registers);
  Layout layout;
  add_part(layout, Level::Cluster, cluster);
  add_part(layout, Level::Serial, turns);
  add_part(layout, Level::Warp, of_warps, d.warps);
  add_part(layout, Level::Register, registers);
  add_part(layout, Level::Serial, each / registers);
  add_part(layout, Level::Warp, d.warps);
  add_part(layout, Level::Lane, d.lanes(), d.row_lanes);
  return layout;
}

// Where any number of warps have a chunk each, a loop of one chunk is done by all of them.
Layout loop_of(const Deal& d, int64_t count) {
  int64_t rest = power_of_two_from(count);
  const auto take = [&](int64_t most) {
    const int64_t part = std::min(most, rest);
    rest /= part;
    return part;
  };
  const int64_t vector = take(d.vector), lanes = take(d.lanes());
  const bool of_chunks = d.loops_first && !d.evenly && count > kChunk,
             any_number = power_of_two_from(d.warps) != d.warps,
             any_warps = any_number && of_chunks;  // these come first
  int64_t warps = any_number ? 1 : take(d.warps);
  const int64_t registers = take(d.registers), cluster = take(d.cluster);
  if (any_warps) warps = d.warps, rest = 1;
  const bool is_chunk =
      cluster > 1 && !of_chunks && registers * warps * lanes * vector == kChunk;
  Layout
      layout;  // blocks exchange what is left when all else of a chunk, or all turns, are added
  if (rest == 1 && !any_warps) add_part(layout, Level::Cluster, cluster);
  if (!of_chunks && !is_chunk) add_part(layout, Level::Register, registers);
  const bool warps_first = of_chunks && rest * cluster * warps > kChunk;
  if (warps_first) add_part(layout, Level::Warp, warps);  // turns stay in one digit
  add_part(layout, Level::Serial, rest);
  if (rest > 1) add_part(layout, Level::Cluster, cluster);
  if (is_chunk) add_part(layout, Level::Register, registers);
  if (!warps_first) add_part(layout, Level::Warp, warps);
  if (rest == 1 && any_warps) add_part(layout, Level::Cluster, cluster);
  if (of_chunks) add_part(layout, Level::Register, registers);
  add_part(layout, Level::Lane, lanes, d.loops_first ? 1 : d.row_lanes);
  add_part(layout, Level::Vector, vector);
  return layout;
}

}  // namespace

Deal in_blocks_of(int64_t warps, Deal deal) {
  deal.row_warps = std::max<int64_t>(1, warps / deal.warps_of_row());
  return deal;
}

Schedule laid_out(const Program& program, const Kernel& kernel, const Deal& deal) {
  Schedule schedule;
  schedule.strategy = Strategy::Layouts;
  schedule.rows = rows_of(deal, row_count(kernel).constant());
  const std::vector<std::vector<int>> loops = loops_of(kernel);
  for (const std::vector<int>& inner : loops) {  // of several not all suit the same vectors
    const int64_t last = kernel.axes[inner.back()].extent.constant();
    Deal own = deal;
    if (loops.size() > 1) own.vector = std::gcd(deal.vector, last);
    own.registers *= deal.vector / own.vector;
    const int64_t count = elements_of(kernel, inner);
    schedule.loops.push_back(deal.chunks > 0 && count > kChunk ? loop_of_chunks(own, count)
                                                               : loop_of(own, count));
  }
  schedule.resident = static_cast<int>(deal.resident);
  if (deal.asks_ahead)
    schedule.prefetch =
        static_cast<int>(blocks_ahead(program.machine) * deal.resident / deal.cluster);
  return asking_for_something(kernel, std::move(schedule));
}

Schedule asking_for_something(Kernel kernel, Schedule schedule) {
  if (schedule.prefetch == 0) return schedule;
  kernel.schedule = schedule;
  if (!why_nothing_asked(kernel).empty()) schedule.prefetch = 0;
  return schedule;
}

}  // namespace tiny_compile
