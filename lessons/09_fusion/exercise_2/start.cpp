#include "exercise.h"

namespace exercise {
Program join_readers(const Program& program) {
  // TODO: as long as two kernels share a read and wait for nothing of each other, make them one.
  return program;
}

}  // namespace exercise
