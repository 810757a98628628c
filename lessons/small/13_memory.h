// Which arrays may share bytes? Those that are never needed at the same time: an array lives from the
// kernel that makes it to the last that reads it, and its place is the lowest that nobody has then.
//
//   k0 makes %1   k1: %1 => %2   k2: %2 => %3     =>  %3 where %1 was
//
// Inputs and results keep their places. Left out: a kernel that writes over what it reads.
#pragma once

#include "lessons/small/12_split.h"

namespace small {

// The plan with a place for each array, in one arena.
inline Plan with_arena(Plan plan) {
  const auto forever = std::ssize(plan.launches);
  Ids first(plan.arrays.size(), forever), last(plan.arrays.size(), -1);
  for (int64_t launch = 0; launch < forever; launch++)
    for (const int64_t array : plan.launches[launch].arrays) {
      first[array] = std::min(first[array], launch);
      last[array] = launch;
    }
  for (size_t input = 0; input < plan.inputs; input++) first[input] = -1, last[input] = forever;
  for (const int64_t output : plan.outputs) last[output] = forever;
  for (size_t array = 0; array < plan.arrays.size(); array++)
    if (last[array] < 0)
      plan.arrays[array] = {0};  // nobody's: a view, or no longer in a kernel
  const auto end = [&](size_t array) {
    return plan.offsets[array] + rounded(count(plan.arrays[array]));
  };
  const auto clash = [&](size_t a, size_t b) {
    return first[a] <= last[b] && first[b] <= last[a] && plan.offsets[a] < end(b) &&
           plan.offsets[b] < end(a);
  };

  std::vector<size_t> order(plan.arrays.size()), placed;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{},
                           [&](size_t k) { return count(plan.arrays[k]); });
  plan.offsets.assign(plan.arrays.size(), kAligned);
  for (const size_t array : order) {  // the largest first
    const auto in_its_way = [&](size_t other) { return clash(array, other); };
    for (auto other = placed.begin(); other != placed.end();) {
      other = std::ranges::find_if(placed, in_its_way);
      if (other != placed.end()) plan.offsets[array] = end(*other);
    }
    placed.push_back(array);
  }
  return plan;
}

}  // namespace small
