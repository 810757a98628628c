#include "exercise.h"

namespace exercise {

int tile_side() { return 64; }

// A thread has 4 x 4 sums, 16 apart in both directions, so that neighbouring threads touch
// neighbouring columns. A slice is 16 steps of k; the last one stops where k does.
std::string multiply_kernel() {
  return R"(
__global__ void multiply(input a, input b, float* c, int rows, int depth, int columns) {
  __shared__ float left[16][64], right[16][64];
  const int across = (columns + 63) / 64;
  const int first_row = blockIdx.x / across * 64, first_column = blockIdx.x % across * 64;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < depth; k0 += 16) {
    for (int p = threadIdx.x; p < 16 * 64; p += 256) {
      const int ka = p % 16, at = p / 16, kb = p / 64, l = p % 64;
      const int i = first_row + at, j = first_column + l;
      left[ka][at] = i < rows && k0 + ka < depth ? a[i*depth + k0 + ka] : 0;
      right[kb][l] = j < columns && k0 + kb < depth ? b[(k0 + kb)*columns + j] : 0;
    }
    __syncthreads();
    for (int k = 0; k < 16 && k0 + k < depth; k++)
      for (int r = 0; r < 4; r++)
        for (int l = 0; l < 4; l++)
          sum[r][l] = __fmaf_rn(left[k][16 * r + y], right[k][16 * l + x], sum[r][l]);
    __syncthreads();
  }
  for (int r = 0; r < 4; r++)
    for (int l = 0; l < 4; l++) {
      const int i = first_row + 16 * r + y, j = first_column + 16 * l + x;
      if (i < rows && j < columns) c[i*columns + j] = sum[r][l];
    }
}
)";
}

}  // namespace exercise
