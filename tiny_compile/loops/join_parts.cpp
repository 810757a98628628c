// Which kernels go over the same rows only once a long reduction has been split? `fuse` saw a
// column of 4096 and four of 1024; after `split` both are rows of 1024 elements.
#include "tiny_compile/loops/join_parts.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/merge.h"

namespace tiny_compile {
namespace {

constexpr int64_t kShare = 8;  // of the bytes that two kernels move, which one has to save

bool writes_any(const Kernel& kernel, const std::vector<bool>& buffers) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    return !makes_register(step) && buffers[step.buffer];
  });
}

// Whether the later may run where the earlier does.
bool waits_for_none(const Program& program, int earlier, int later) {
  const std::vector<bool> read = buffers_read(program, program.kernels[later]);
  return std::none_of(program.kernels.begin() + earlier, program.kernels.begin() + later,
                      [&](const Kernel& kernel) { return writes_any(kernel, read); });
}

std::optional<Kernel> joined(const Program& program, const Kernel& first,
                             const Kernel& second) {
  const auto is_open = [](const Kernel& kernel) {
    return !kernel.schedule && kernel.sized.empty() && is_sequential(kernel) &&
           row_count(kernel).is_constant();
  };
  if (!is_open(first) || !is_open(second) || !(row_count(first) == row_count(second)))
    return std::nullopt;
  Group both(first);
  if (!merge_sibling(program, both, Group(second)).empty()) return std::nullopt;
  Kernel kernel = without_repeats(both.finish());
  if (!(row_count(kernel) == row_count(first))) return std::nullopt;
  kernel.name = first.name;
  const int64_t apart = bytes_moved(program, first) + bytes_moved(program, second);
  return kShare * bytes_moved(program, kernel) <= (kShare - 1) * apart ? std::optional(kernel)
                                                                       : std::nullopt;
}

void take_out(Program& program, std::vector<std::vector<int>>& parts, int kernel) {
  program.kernels.erase(program.kernels.begin() + kernel);
  for (std::vector<int>& list : parts) {
    std::erase(list, kernel);
    for (int& number : list) number -= number > kernel;
  }
}

bool join(Program& program, std::vector<std::vector<int>>& parts, int a, int b) {
  const int earlier = std::min(a, b), later = std::max(a, b);
  if (!waits_for_none(program, earlier, later)) return false;
  std::optional<Kernel> both =
      joined(program, program.kernels[earlier], program.kernels[later]);
  if (!both) return false;
  program.kernels[earlier] = std::move(*both);
  take_out(program, parts, later);
  return true;
}

}  // namespace

void join_parts(Program& program, std::vector<std::vector<int>>& parts) {
  if (program.target != Target::Cuda) return;
  for (size_t k = 0; k < parts.size(); k++) {
    for (size_t other = 0; other < parts.size(); other++) {
      if (parts[k].size() < 2) break;  // it is not split, or its part has joined another
      if (other != k && !parts[other].empty())
        join(program, parts, parts[k][0], parts[other][0]);
    }
  }
}

}  // namespace tiny_compile
