// What does a pass over a row's elements keep for the passes behind it?
#pragma once

#include <functional>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// For each scalar the axes that it depends on: bit a for axis a.
std::vector<uint64_t> axes_of_scalars(const Kernel& kernel);

// What these steps evaluate, in order; not what only values that are kept are made of.
std::vector<int> evaluated(const Kernel& kernel, const std::vector<int>& steps,
                           const std::function<bool(int)>& is_kept);

// What these scalars take, themselves too.
std::vector<int> evaluated_for(const Kernel& kernel, const std::vector<int>& roots,
                               const std::function<bool(int)>& is_kept);

// The values that each pass (sweeps.h) keeps for later ones over the same loops: loads and costly
// ones, or fewer that are made of them. Only over loops that `may_keep`.
std::vector<std::vector<int>> kept_values(
    const Kernel& kernel, const std::vector<std::vector<int>>& passes,
    const std::function<bool(const std::vector<int>&)>& may_keep);

// Of one element, how many values are held at a time where all loops may keep theirs, and how many
// bytes: what is widened can be widened again from what it was.
struct Held {
  int64_t values = 0, bytes = 0;
};
Held most_held(const Kernel& kernel);

}  // namespace tiny_compile
