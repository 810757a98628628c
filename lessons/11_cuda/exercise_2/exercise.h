// 11-2 ★★ A sum that eight warps share
//
// Write the text of
//   __global__ void block_sum(const float* x, float* out)
// It is launched with blocks of 256 threads. Block b adds up x[256*b] .. x[256*b + 255] and puts the
// sum into out[b], in the order of the numeric contract: the upper half is added to the lower,
// element by element, then the upper half of what is left to its lower, and so on:
//   256 values  =>  128: x[t] + x[t + 128]  =>  64  =>  32  =>  16  =>  8  =>  4  =>  2  =>  1
// The same numbers in another order are another sum in the last bits, so no other order will do.
//
// Threads of a block share __shared__ memory; what one writes, another sees after both have been
// at a __syncthreads(), which every thread of the block must reach. From 32 values on one warp is
// enough, and lanes of a warp can read each other's registers without memory:
//   v + __shfl_xor_sync(0xffffffffu, v, 16)      my v and that of lane ^ 16
// All 32 lanes must take part in that.
//
// The check runs your text on the CPU, the threads in turn, each as far as it can go: from the
// first to the last, and from the last to the first. So a barrier that is missing shows.
#pragma once

#include <string>

namespace exercise {

std::string block_sum_kernel();

}  // namespace exercise
