// fails: a reader that waits by way of another kernel stays apart
#include "exercise.h"

namespace exercise {
namespace {

// Whether the later kernel reads what the earlier one writes.
bool waits_for(const Program& program, int later, int earlier) {
  return reads_from(program, program.kernels[later], program.kernels[earlier]);
}

// The program with the first two siblings made one; `changed` says whether there were any.
Program join_two(const Program& program, bool& changed) {
  const int count = static_cast<int>(program.kernels.size());
  for (int first = 0; first < count; first++) {
    for (int second = first + 1; second < count; second++) {
      if (waits_for(program, second, first)) continue;
      Merged merged =
          merged_with_sibling(program, program.kernels[first], program.kernels[second]);
      if (!merged.refusal.empty()) continue;
      std::vector<Kernel> kernels = program.kernels;
      kernels[first] = std::move(merged.kernel);
      kernels.erase(kernels.begin() + second);
      changed = true;
      return with_kernels(program, std::move(kernels));
    }
  }
  return program;
}

}  // namespace

Program join_readers(const Program& program) {
  Program result = program;
  for (bool changed = true; changed;) {
    changed = false;
    result = join_two(result, changed);
  }
  return result;
}

}  // namespace exercise
