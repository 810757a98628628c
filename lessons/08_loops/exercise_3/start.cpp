#include "exercise.h"

namespace exercise {

Program hoist(const Program& program) {
  // TODO: which scalars know too few axes? Move each into a kernel in front.
  return program;
}

}  // namespace exercise
