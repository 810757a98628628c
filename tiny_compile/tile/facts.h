// What does a schedule make of a kernel? Who has which element, what goes through shared memory,
// which limit the model sees and how far from it the kernel is: what `tc explain` says and
// `tc picture layout` draws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/schedule/occupancy.h"
#include "tiny_compile/tile/shared_use.h"

namespace tiny_compile {

// The bits of a loop in the order in which these reductions take them.
struct ReductionFacts {
  std::vector<std::string> names;  // "r0 = max"
  std::vector<Bit> order;
};

struct LoopFacts {
  std::vector<int> inner;  // axes
  int64_t count = 1;       // elements of a row
  Layout layout;
  int64_t side_by_side = 0;  // bytes of neighbours that a warp reads at a time; 0: none are
  std::vector<ReductionFacts> reductions;
};

// Of a block under layouts.
struct BlockFacts {
  int64_t rows = 1;   // that it covers
  int64_t count = 1;  // of them in the whole kernel
  int64_t blocks = 1;
  int64_t of_loops = 1;  // of them, that have parts of the same rows
  int warps = 1;
  int64_t multiprocessors = 1;
  std::vector<LoopFacts> loops;  // none: the rows alone
  int64_t shared = 0;            // bytes
  Occupancy occupancy;
};

struct ScheduleFacts {
  std::string kernel;
  Schedule schedule;
  std::string scattered;            // by whom, where it scatters on a GPU
  std::optional<BlockFacts> block;  // where the schedule has layouts
  std::vector<SharedUse> shared;    // of a block of a GPU
  Estimate estimate;
  int64_t bytes = 0;  // bytes_moved
  double floor = 0;   // microseconds: a launch, and those bytes at the machine's bandwidth
  int64_t costly = 0, quotients = 0;  // ops (Cost::Costly); what is computed again counts once
  size_t launched_with = 0;           // other kernels in its launch
};

// Whether there is something to say: the kernel has a schedule, and its sizes are numbers.
bool has_facts(const Kernel& kernel);

ScheduleFacts facts_of(const Program& program, const Kernel& kernel);

// Who has what, orders of reductions, each use of shared memory, and the limit: a line each.
std::vector<std::string> lines(const ScheduleFacts& facts);

// "5 halvings in the thread, 2 between lanes, an exchange of 16 warps", of so many in a block.
std::string in_words(const std::vector<Bit>& order, int64_t warps);

}  // namespace tiny_compile
