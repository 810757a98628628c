#include "exercise.h"

namespace exercise {

void store_tile(const float* tile, int rows, int columns, const float* bias, float* c,
                long long stride) {
  // TODO: add the bias, then relu.
  (void)bias;
  for (int i = 0; i < rows; i++)
    for (int l = 0; l < columns; l++) c[i * stride + l] = tile[i * kTileColumns + l];
}

}  // namespace exercise
