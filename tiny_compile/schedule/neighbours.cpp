// What would a layout be with a little more of this and less of that? It is taken back to the deal that makes it, whose
// numbers are then doubled and halved:
//
//   rows grid · lane 16 · vector 2   loop register 16 · serial 2 · warp 8 · lane 2 from 16
//   =>   rows grid · lane 16 · vector 4   loop register 16 · serial 2 · warp 8 · lane 2 from 16
//        rows grid · lane 16 · vector 2   loop register 16 · serial 4 · warp 4 · lane 2 from 16
//        rows grid · lane 16 · vector 4   loop register 8 · serial 4 · warp 8 · lane 2 from 16, ...
//
// (H200: of 83 kernels, one of each random function, the best such line took .91 of the time in the geometric mean; .90
// where lanes go along rows, .97 elsewhere.)
#include "tiny_compile/schedule/neighbours.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/schedule/deal.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostRegisters = 256;  // of a thread, that a deal has elements in

using Number = int64_t Deal::*;
constexpr Number kNumbers[] = {&Deal::registers,     &Deal::warps,   &Deal::row_vector,
                               &Deal::row_lanes,     &Deal::cluster, &Deal::row_warps,
                               &Deal::row_registers, &Deal::vector,  &Deal::chunks};

bool deals_alike(Schedule a, const Schedule& b) {
  a.resident = b.resident, a.prefetch = b.prefetch, a.early = b.early;
  return a == b;
}

// What the layouts name outright.
Deal named_by(const Layout& rows, const Layout& loop) {
  Deal d;
  d.row_registers = extent_of(rows, Level::Register),
  d.row_warps = extent_of(rows, Level::Warp);
  d.row_lanes = extent_of(rows, Level::Lane), d.row_vector = extent_of(rows, Level::Vector);
  d.cluster = extent_of(loop, Level::Cluster), d.warps = extent_of(loop, Level::Warp);
  d.vector = extent_of(loop, Level::Vector);
  return d;
}

// The same deal by chunks: the first warps have one each, and the last share it.
std::vector<Deal> with_chunks(const Deal& deal, const Layout& loop) {
  std::vector<Deal> deals = {deal};
  const auto first = std::find_if(loop.begin(), loop.end(),
                                  [](const Part& part) { return part.level == Level::Warp; });
  if (first == loop.end()) return deals;
  deals.push_back(deal);
  deals.back().chunks = first->extent;
  deals.back().warps = deal.warps / first->extent;
  return deals;
}

// One that makes the kernel's own layouts.
std::optional<Deal> deal_of(const Program& program, const Kernel& kernel) {
  const Schedule& own = *kernel.schedule;
  for (const Layout& loop : own.loops) {
    for (Deal deal : with_chunks(named_by(own.rows, loop), loop)) {
      for (const bool loops_first : {false, true}) {
        for (const bool evenly : {false, true}) {
          deal.loops_first = loops_first, deal.evenly = evenly;
          for (deal.registers = 1; deal.registers <= kMostRegisters; deal.registers *= 2) {
            if (deals_alike(laid_out(program, kernel, deal), own)) return deal;
          }
        }
      }
    }
  }
  return std::nullopt;
}

// Each number doubled and halved; then one doubled and another halved.
std::vector<Deal> around(const Deal& deal) {
  std::vector<Deal> all;
  const auto halves = [](const Deal& d, Number n) { return d.*n > 1 && d.*n % 2 == 0; };
  for (const Number n : kNumbers) {
    Deal more = deal, less = deal;
    more.*n *= 2, less.*n /= 2;
    if (deal.*n > 0) all.push_back(more);
    if (halves(deal, n)) all.push_back(less);
  }
  for (const Number up : kNumbers) {
    for (const Number down : kNumbers) {
      Deal other = deal;
      other.*up *= 2, other.*down /= 2;
      if (up != down && deal.*up > 0 && halves(deal, down)) all.push_back(other);
    }
  }
  return all;
}

// What the schedule says beside its layouts. A thread that is told of registers keeps as many.
Schedule with_rest_of(const Schedule& own, Schedule schedule) {
  if (own.resident > 0)
    schedule.resident = std::max(1, own.resident * warps_of(own) / warps_of(schedule));
  schedule.prefetch = own.prefetch, schedule.early = own.early;
  return schedule;
}

}  // namespace

std::vector<Schedule> neighbours(const Program& program, const Kernel& kernel) {
  if (!kernel.schedule || kernel.schedule->strategy != Strategy::Layouts) return {};
  const Schedule& own = *kernel.schedule;
  const std::optional<Deal> deal = deal_of(program, kernel);
  std::vector<Schedule> found;
  Kernel tried = kernel;
  for (const Deal& other : deal ? around(*deal) : std::vector<Deal>{}) {
    if (other.row_lanes > kLanes) continue;
    const Schedule schedule = with_rest_of(own, laid_out(program, kernel, other));
    tried.schedule = schedule;
    const bool is_known = std::find(found.begin(), found.end(), schedule) != found.end();
    if (schedule != own && !is_known && why_illegal(program, tried).empty())
      found.push_back(schedule);
  }
  return found;
}

}  // namespace tiny_compile
