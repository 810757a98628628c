// fails: a read serves 16 products
#include "exercise.h"

namespace exercise {

int tile_side() { return 16; }

// A thread has 4 x 4 sums, 16 apart in both directions, so that neighbouring threads touch
// neighbouring columns. A slice is 16 steps of k; the last one stops where k does.
std::string multiply_kernel() {
  return R"(
__global__ void multiply(input a, input b, float* c, int rows, int depth, int columns) {
  __shared__ float left[16][16], right[16][16];
  const int across = (columns + 15) / 16;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int i = blockIdx.x / across * 16 + y, j = blockIdx.x % across * 16 + x;
  float sum = 0;
  for (int k0 = 0; k0 < depth; k0 += 16) {
    left[y][x] = i < rows && k0 + x < depth ? a[i*depth + k0 + x] : 0;
    right[y][x] = j < columns && k0 + y < depth ? b[(k0 + y)*columns + j] : 0;
    __syncthreads();
    for (int k = 0; k < 16 && k0 + k < depth; k++)
      sum = __fmaf_rn(left[y][k], right[k][x], sum);
    __syncthreads();
  }
  if (i < rows && j < columns) c[i*columns + j] = sum;
}
)";
}

}  // namespace exercise
