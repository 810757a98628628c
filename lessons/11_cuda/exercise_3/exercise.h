// 11-3 ★★ Four at a time
//
// A thread can move 16 bytes with one instruction, where they lie at an address that is a multiple
// of 16. The lesson's kernel does so for sizes that are multiples of 4. Write the text of
//   __global__ void twice(const float* x, float* y, int n)
// which sets y[i] = 2 * x[i] for i of 0 .. n-1, any n, so that
//   - four elements that are all inside are read with one float4 and written with one,
//   - the up to three at the end are done one by one,
//   - nothing outside is read or written.
// It is launched with blocks of 256 threads, just enough for a thread for every four elements:
// (n + 1023) / 1024 blocks. x and y are multiples of 16.
//
// float4 has the members x, y, z and w; *(const float4*)(p) reads one, *(float4*)(p) = v writes.
//
// The check runs your text on the CPU with a float4 that counts and looks where it is read from.
#pragma once

#include <string>

namespace exercise {

std::string twice_kernel();

}  // namespace exercise
