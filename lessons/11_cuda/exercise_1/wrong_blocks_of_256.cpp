// fails: any grid does
#include "exercise.h"

namespace exercise {

std::string grid_stride_kernel(const std::string& body) {
  return R"(
__global__ void k(int* out, int n) {
  const int threads = gridDim.x * 256;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) { )" +
         body + R"( }
}
)";
}

}  // namespace exercise
