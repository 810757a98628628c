// fails: each column has its bias
#include "exercise.h"

namespace exercise {

void store_tile(const float* tile, int rows, int columns, const float* bias, float* c,
                long long stride) {
  for (int i = 0; i < rows; i++) {
    for (int l = 0; l < columns; l++) {
      const float sum = tile[i * kTileColumns + l] + bias[i];
      c[i * stride + l] = sum <= 0 ? 0.0f : sum;  // false for a NaN, true for -0
    }
  }
}

}  // namespace exercise
