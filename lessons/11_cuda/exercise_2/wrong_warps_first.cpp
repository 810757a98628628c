// fails: the order is the contract's
#include "exercise.h"

namespace exercise {

// The halves 128, 64 and 32 are other warps': by way of shared memory. The rest is one warp's.
std::string block_sum_kernel() {
  return R"(
__global__ void block_sum(const float* x, float* out) {
  __shared__ float part[8];
  const int t = threadIdx.x;
  float v = x[256 * blockIdx.x + t];
  for (int mask = 16; mask > 0; mask /= 2) v += __shfl_xor_sync(0xffffffffu, v, mask);
  if (t % 32 == 0) part[t / 32] = v;
  __syncthreads();
  if (t == 0)
    out[blockIdx.x] = ((part[0] + part[4]) + (part[2] + part[6])) +
                      ((part[1] + part[5]) + (part[3] + part[7]));
}
)";
}

}  // namespace exercise
