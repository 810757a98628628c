// Which loads have neighbours side by side along another axis than the last?
//
//   out[i0*4096 + i1] = x[i1*4096 + i0] + y[i0*4096 + i1]   =>   that of x, along i0
#include "tiny_compile/loops/transposed_loads.h"

#include "tiny_compile/loops/axes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLeast = 16;  // shorter axes are not worth it

}  // namespace

int transposed_axis(const Kernel& kernel, const Scalar& load) {
  if (!is_plain(load)) return -1;
  const Axis& across = kernel.axes[kernel.rows - 1];
  const Expr stride = stride_of(load.index, across);
  if (stride.bounds().high < kLeast) return -1;
  for (int axis = 0; axis + 1 < kernel.rows; axis++) {
    const Axis& along = kernel.axes[axis];
    if (coefficient(load.index, along.symbol()) != 1) continue;
    const Expr rest = load.index - along.symbol() - across.symbol() * stride;
    if (!depends_on(rest, along.name) && !depends_on(rest, across.name)) return axis;
  }
  return -1;
}

std::vector<int> transposed_loads(const Kernel& kernel) {
  std::vector<int> loads;
  int axis = -1;
  if (kernel.rows < 2 || kernel.axes[kernel.rows - 1].extent.bounds().high < kLeast) return {};
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const int transposed = transposed_axis(kernel, kernel.scalars[id]);
    if (transposed < 0 || (axis >= 0 && transposed != axis)) continue;  // one axis a kernel
    axis = transposed;
    loads.push_back(static_cast<int>(id));
  }
  if (axis < 0 || kernel.axes[axis].extent.bounds().high < kLeast) return {};
  return loads.size() <= 4 ? loads : std::vector<int>{};
}

int64_t bytes_of_squares(const Kernel& kernel) {
  int64_t bytes = 0;
  for (int load : transposed_loads(kernel))
    bytes += kSquare * kSquare * static_cast<int64_t>(size_of(kernel.scalars[load].dtype));
  return bytes;
}

bool has_squares(const Kernel& kernel) {
  return schedule_of(kernel).keep && !transposed_loads(kernel).empty();
}

}  // namespace tiny_compile
