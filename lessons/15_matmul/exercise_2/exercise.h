// 15-2 ★ The end of a matmul
//
// relu(matmul(a, b) + bias) is one kernel: the tile of sums is in registers or in L1 when the
// last k is done, so bias and relu cost no trip to memory. The generated kernel ends with a loop
// that copies what of the tile lies inside the result:
//   for (int i = 0; i < rows; i++)
//     for (int l = 0; l < columns; l++) c[i*stride + l] = tile[i*32 + l];
// Write that loop with bias and relu in it. bias[l] belongs to column l of the tile.
//
// relu here is the compiler's maximum(x, 0), to the bit: a NaN stays a NaN, and the result of -0 is
// +0. Nothing outside of the rows x columns elements of c may be written: beside them
// are other tiles' results, which other threads write.
#pragma once

namespace exercise {

constexpr int kTileColumns = 32;  // from one row of the tile to the next

void store_tile(const float* tile, int rows, int columns, const float* bias, float* c,
                long long stride);

}  // namespace exercise
