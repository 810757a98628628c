// How does one search among thousands of schedules with time for two dozen? What lies next to the policy's own is mostly
// better than what the model likes best; what is measured says which of them:
//
//   turns  {1.00, .97, .81}, {1.10, 1.09, .88}, {1.02, .99, .82}
//   gains  1, 1.02, 1.25     =>  winner 2; with gains of 1, 1.01, .99 winner 0
//
// Times are compared within their turn: what slows a machine for a while slows all in it.
#include "tiny_compile/schedule/search.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/schedule/neighbours.h"

namespace tiny_compile {
namespace {

constexpr double kLeastGain = 1.02;                 // less is the noise of a machine
constexpr double kHope = 0.9;                       // of the best one's gain
constexpr int64_t kRegisters[] = {0, 128, 80, 64};  // of a thread; 0: the compiler's

bool has_strategy(const std::vector<Schedule>& list, Strategy strategy) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Schedule& s) { return s.strategy == strategy; });
}

// The same with other numbers of blocks that a multiprocessor holds, and so of registers that a thread may take: what the
// compiler makes of that the model does not know.
std::vector<Schedule> with_other_blocks(const Program& program, Kernel kernel,
                                        Schedule schedule) {
  const bool is_told =
      schedule.strategy == Strategy::Layouts || schedule.strategy == Strategy::Pointwise;
  if (program.target != Target::Cuda || !is_told || schedule.prefetch > 0) return {};
  const int64_t threads = kLanes * warps_of(schedule);
  std::vector<Schedule> all;
  for (const int64_t registers : kRegisters) {
    schedule.resident =
        static_cast<int>(registers == 0 ? 0 : blocks_held(program.machine, threads, registers));
    kernel.schedule = schedule;
    if (why_illegal(program, kernel).empty()) all.push_back(schedule);
  }
  return all;
}

size_t count_of(const Turns& turns) { return turns.empty() ? 1 : turns[0].size(); }

}  // namespace

std::vector<Schedule> candidates(const Program& program, const Kernel& kernel, size_t most) {
  std::vector<Priced> all = ranked(program, kernel);
  std::vector<Schedule> chosen = {schedule_of(kernel)};
  const auto multiplies = [](const Schedule& s) {
    return s.strategy == Strategy::Tiles || s.strategy == Strategy::Library;
  };
  if (multiplies(chosen[0]))  // without tiles it may take minutes
    std::erase_if(all, [&](const Priced& p) { return !multiplies(p.schedule); });
  const auto add = [&](const Schedule& schedule) {
    const bool known = std::find(chosen.begin(), chosen.end(), schedule) != chosen.end();
    if (!known && chosen.size() < most) chosen.push_back(schedule);
  };
  for (const Priced& priced : all) {
    if (!has_strategy(chosen, priced.schedule.strategy)) add(priced.schedule);
  }
  for (const Schedule& other : with_other_blocks(program, kernel, chosen[0])) add(other);
  if (!all.empty()) add(all[0].schedule);
  for (const Schedule& near : neighbours(program, kernel)) add(near);
  for (const Priced& priced : all) add(priced.schedule);
  return chosen;
}

double gain_of(const Turns& turns, size_t candidate) {
  std::vector<double> gains;
  for (const std::vector<double>& turn : turns) {
    if (std::isfinite(turn[candidate])) gains.push_back(turn[0] / turn[candidate]);
  }
  if (gains.size() < turns.size()) return 0;  // it left the race
  const auto middle = gains.begin() + static_cast<std::ptrdiff_t>(gains.size() / 2);
  std::nth_element(gains.begin(), middle, gains.end());
  return gains.empty() ? 0 : *middle;
}

std::vector<size_t> survivors(const Turns& turns) {
  std::vector<double> gains;
  for (size_t k = 0; k < count_of(turns); k++) gains.push_back(gain_of(turns, k));
  const double best = *std::max_element(gains.begin(), gains.end());
  std::vector<size_t> left = {0};
  for (size_t k = 1; k < gains.size(); k++) {
    if (gains[k] >= kHope * best) left.push_back(k);
  }
  return left;
}

size_t winner(const Turns& turns) {
  size_t best = 0;
  double most = 1;
  for (size_t k = 1; k < count_of(turns); k++) {
    const double gain = gain_of(turns, k);
    if (gain >= kLeastGain && gain > most) best = k, most = gain;
  }
  return best;
}

}  // namespace tiny_compile
