#include "exercise.h"

namespace exercise {

Type conv1d_type(const Type& x, const Type& kernel, const Conv1d& how) {
  if (how.step < 1) fail("conv1d: a step of ", how.step, "; it is 1 or more");
  // TODO: the other rules, and the size of the last axis.
  return {x.dtype, {x.shape[0], kernel.shape[0], x.shape[2]}};
}

}  // namespace exercise
