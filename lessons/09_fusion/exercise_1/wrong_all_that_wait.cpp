// fails: a kernel that waits for the producer alone is not between
#include "exercise.h"

namespace exercise {

bool lies_between(const Program& program, int producer, int consumer) {
  for (int k = producer + 1; k < consumer; k++) {
    if (reads_from(program, program.kernels[k], program.kernels[producer])) return true;
  }
  return false;
}

}  // namespace exercise
