// fails: the size is that of the windows
#include "exercise.h"

namespace exercise {

Type conv1d_type(const Type& x, const Type& kernel, const Conv1d& how) {
  const std::string operands = " (" + x.str() + " with " + kernel.str() + ")";
  if (how.step < 1) fail("conv1d: a step of ", how.step, "; it is 1 or more");
  if (how.dilation < 1) fail("conv1d: a dilation of ", how.dilation, "; it is 1 or more");
  if (how.padding < 0) fail("conv1d: a padding of ", how.padding, " is negative");
  if (x.rank() != 3 || kernel.rank() != 3)
    fail("conv1d: takes [N,C,L] and [O,C,K], of rank 3", operands);
  if (x.dtype != kernel.dtype) fail("conv1d: two dtypes", operands, "; cast one of them");
  if (x.shape[1] != kernel.shape[1])
    fail("conv1d: ", x.shape[1], " channels, the kernel has ", kernel.shape[1], operands);
  const Expr reach = kernel.shape[2] * how.dilation;
  const Expr room = x.shape[2] + 2 * how.padding - reach;
  if (kernel.shape[2].bounds().high < 1) fail("conv1d: the kernel is empty", operands);
  if (room.bounds().high < 0)
    fail("conv1d: the kernel reaches over ", reach, ", and there are only ",
         x.shape[2] + 2 * how.padding, operands);
  return {x.dtype, {x.shape[0], kernel.shape[0], floor_div(room, how.step) + 1}};
}

}  // namespace exercise
