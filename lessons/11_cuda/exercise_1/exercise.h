// 11-1 ★ Any number of elements, any grid
//
// The kernel of the lesson is launched with as many threads as there is work. Another way is a
// grid of a fixed size, in which each thread takes several elements, a whole grid apart:
//   8 blocks of 256 threads, 5000 elements: thread 10 of block 1 takes 266, 2314 and 4362
// That is a *grid-stride loop*. The launch no longer depends on the size.
//
// Write the text of the kernel
//   __global__ void k(int* out, int n)
// that does `body`, one or more statements about the element i, for each i of 0 .. n-1, once.
// Neighbouring threads take neighbouring elements, so that a warp reads one stretch of memory.
// threadIdx.x, blockIdx.x, blockDim.x (threads in a block) and gridDim.x (blocks) say where a
// thread is; nothing may be assumed about the last two.
//
// The check runs your text on the CPU, thread by thread (lessons/tools/threads.h).
#pragma once

#include <string>

namespace exercise {

std::string grid_stride_kernel(const std::string& body);

}  // namespace exercise
