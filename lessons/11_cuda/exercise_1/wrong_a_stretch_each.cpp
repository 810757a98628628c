// fails: neighbouring threads take neighbouring elements
#include "exercise.h"

namespace exercise {

std::string grid_stride_kernel(const std::string& body) {
  return R"(
__global__ void k(int* out, int n) {
  const int threads = gridDim.x * blockDim.x;
  const int each = (n + threads - 1) / threads;
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
  for (int i = first; i < n && i < first + each; i++) { )" +
         body + R"( }
}
)";
}

}  // namespace exercise
