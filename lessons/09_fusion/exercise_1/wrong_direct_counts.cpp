// fails: a direct read alone has nothing between
#include "exercise.h"

namespace exercise {

bool lies_between(const Program& program, int producer, int consumer) {
  if (reads_from(program, program.kernels[consumer], program.kernels[producer])) return true;
  for (int k = producer + 1; k < consumer; k++) {
    if (reads_from(program, program.kernels[k], program.kernels[producer]) &&
        lies_between(program, k, consumer))
      return true;
  }
  return false;
}

}  // namespace exercise
