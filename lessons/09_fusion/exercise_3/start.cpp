#include "exercise.h"

namespace exercise {

Program launch_together(const Program& program) {
  // TODO: make two kernels one where they may share a launch, until no two are left.
  return program;
}

}  // namespace exercise
