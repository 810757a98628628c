#include "exercise.h"

namespace exercise {

std::string twice_kernel() {
  return R"(
__global__ void twice(const float* x, float* y, int n) {
  const int first = 4 * (blockIdx.x * 256 + threadIdx.x);
  // TODO: one read and one write for these four
  for (int i = first; i < first + 4; i++)
    if (i < n) y[i] = 2 * x[i];
}
)";
}

}  // namespace exercise
