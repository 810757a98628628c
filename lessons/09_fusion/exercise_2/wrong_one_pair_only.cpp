// fails: three readers become one kernel
#include "exercise.h"

namespace exercise {
namespace {

// Whether the later kernel waits for the earlier one, directly or by way of others.
bool waits_for(const Program& program, int later, int earlier) {
  for (int k = earlier; k < later; k++) {
    if (!reads_from(program, program.kernels[later], program.kernels[k])) continue;
    if (k == earlier || waits_for(program, k, earlier)) return true;
  }
  return false;
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
  bool changed = false;
  result = join_two(result, changed);
  return result;
}

}  // namespace exercise
