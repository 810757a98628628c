// fails: a kernel that only stands between in the list is not between
#include "exercise.h"

namespace exercise {

bool lies_between(const Program& program, int producer, int consumer) {
  for (int k = producer + 1; k < consumer; k++) {
    if (reads_from(program, program.kernels[consumer], program.kernels[k])) return true;
  }
  return false;
}

}  // namespace exercise
