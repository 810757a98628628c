// Which kernels go over the same rows only once a long reduction has been split? `fuse` saw a
// column of 4096 and four of 1024; after `split` both are rows of 1024 elements.
#include "tiny_compile/loops/join_parts.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/merge.h"

namespace tiny_compile {
namespace {

constexpr int64_t kShare = 8;       // of the bytes that two kernels move, which one has to save
constexpr size_t kMostReads = 128;  // buffers of one, as of those that `fuse` makes

// What decides whether two kernels are worth a try, once for each.
struct Candidate {
  int64_t rows = -1;       // -1: it has its schedule, or does not reduce rows
  std::vector<int> reads;  // sorted
};

Candidate candidate_of(const Kernel& kernel) {
  const bool reduces = std::all_of(  // scans were taken apart for a reason
      kernel.steps.begin(), kernel.steps.end(), [](const Step& step) {
        return step.kind == StepKind::Reduce || step.kind == StepKind::Store;
      });
  const bool is_open = reduces && !kernel.schedule && kernel.sized.empty() &&
                       is_sequential(kernel) && row_count(kernel).is_constant();
  if (!is_open) return {};
  return {row_count(kernel).constant(), loaded_buffers(kernel)};
}

bool may_share(const Candidate& a, const Candidate& b) {
  std::vector<int> both;
  std::set_intersection(a.reads.begin(), a.reads.end(), b.reads.begin(), b.reads.end(),
                        std::back_inserter(both));
  return a.rows >= 0 && a.rows == b.rows && !both.empty();
}

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

// What is computed again waits for its readers, and is not kept for who runs earlier.
std::optional<Kernel> joined(const Program& program, const Kernel& first,
                             const Kernel& second) {
  if (first.again != second.again) return std::nullopt;
  Group both(first);
  if (!merge_sibling(program, both, Group(second)).empty()) return std::nullopt;
  Kernel kernel = without_repeats(both.finish());
  if (!(row_count(kernel) == row_count(first)) || loaded_buffers(kernel).size() > kMostReads)
    return std::nullopt;
  kernel.name = first.name;
  const int64_t apart = bytes_moved(program, first) + bytes_moved(program, second);
  return kShare * bytes_moved(program, kernel) <= (kShare - 1) * apart ? std::optional(kernel)
                                                                       : std::nullopt;
}

class Joining {
 public:
  Joining(Program& program, std::vector<std::vector<int>>& parts)
      : program_(program), parts_(parts), is_part_(program.kernels.size()) {
    for (const Kernel& kernel : program.kernels) candidates_.push_back(candidate_of(kernel));
    for (const std::vector<int>& list : parts)
      for (const int kernel : list) is_part_[kernel] = list.size() > 1;
  }

  void run() {
    for (size_t k = 0; k < program_.kernels.size(); k++) {
      while (k < program_.kernels.size() && is_part_[k] && join_any(static_cast<int>(k))) {
      }
    }
  }

 private:
  // With another; of two the earlier stands for both, so that number `k` may be another kernel then.
  bool join_any(int k) {
    for (int other = 0; other < std::ssize(program_.kernels); other++)
      if (other != k && join(std::min(k, other), std::max(k, other))) return true;
    return false;
  }

  bool join(int earlier, int later) {
    if (!may_share(candidates_[earlier], candidates_[later]) ||
        !waits_for_none(program_, earlier, later))
      return false;
    std::optional<Kernel> both =
        joined(program_, program_.kernels[earlier], program_.kernels[later]);
    if (!both) return false;
    candidates_[earlier] = candidate_of(*both);
    program_.kernels[earlier] = std::move(*both);
    take_out(later);
    return true;
  }

  void take_out(int kernel) {
    program_.kernels.erase(program_.kernels.begin() + kernel);
    candidates_.erase(candidates_.begin() + kernel);
    is_part_.erase(is_part_.begin() + kernel);
    for (std::vector<int>& list : parts_) {
      std::erase(list, kernel);
      for (int& number : list) number -= number > kernel;
    }
  }

  Program& program_;
  std::vector<std::vector<int>>& parts_;  // of each fused kernel
  std::vector<Candidate> candidates_;     // of each kernel
  std::vector<bool> is_part_;
};

}  // namespace

void join_parts(Program& program, std::vector<std::vector<int>>& parts) {
  if (program.target == Target::Cuda) Joining(program, parts).run();
}

}  // namespace tiny_compile
