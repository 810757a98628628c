// fails: nothing outside is read
#include "exercise.h"

namespace exercise {

std::string twice_kernel() {
  return R"(
__global__ void twice(const float* x, float* y, int n) {
  const int first = 4 * (blockIdx.x * 256 + threadIdx.x);
  if (first >= n) return;
  float4 v = *(const float4*)(x + first);
  if (first + 4 <= n) {
    v.x *= 2;
    v.y *= 2;
    v.z *= 2;
    v.w *= 2;
    *(float4*)(y + first) = v;
    return;
  }
  for (int i = first; i < n; i++) y[i] = 2 * x[i];
}
)";
}

}  // namespace exercise
