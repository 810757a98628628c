#include "exercise.h"

namespace exercise {

// Marks what waits for the producer without asking the consumer, in the order of the kernels.
bool lies_between(const Program& program, int producer, int consumer) {
  const std::vector<Kernel>& kernels = program.kernels;
  std::vector<int> waiting;  // others that wait for the producer
  for (int k = producer + 1; k < consumer; k++) {
    bool waits = reads_from(program, kernels[k], kernels[producer]);
    for (int other : waiting) waits = waits || reads_from(program, kernels[k], kernels[other]);
    if (waits) waiting.push_back(k);
  }
  for (int other : waiting) {
    if (reads_from(program, kernels[consumer], kernels[other])) return true;
  }
  return false;
}

}  // namespace exercise
