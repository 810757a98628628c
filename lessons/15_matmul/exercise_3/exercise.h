// 15-3 ★★★ A block's tile
//
// Write the text of a CUDA kernel
//   __global__ void multiply(input a, input b, float* c, int rows, int depth, int columns)
// with c[i*columns + j] = the sum over k of a[i*depth + k] * b[k*columns + j], k ascending, from +0,
// each step a __fmaf_rn(x, y, sum). An `input` is read as a[n], in no other way; it counts how often.
//
// It is launched with blocks of 256 threads, one for each tile of tile_side() x tile_side() elements
// of c; block n has the tile in row n / across and column n % across of tiles, where across is
// (columns + side - 1) / side.
//
// start.cpp reads two numbers for each product. That is what memory cannot keep up with. Load a
// slice of a and a slice of b into __shared__ memory, wait, let all threads of the block use
// them, wait, load the next. At most one read, of a or of b, is allowed for 16 products (a step of
// k in a tile of 16 x 16: 32 reads for 256 products, one for 8).
// Sizes need not be multiples of anything; nothing outside of a and b may be read.
//
// The check runs your text on the CPU, thread by thread: a missing barrier shows (lesson 11).
#pragma once

#include <string>

namespace exercise {

int tile_side();
std::string multiply_kernel();

}  // namespace exercise
