// fails: every size gives every element
#include "exercise.h"

#include <algorithm>

namespace exercise {

// 25 sums, 5 elements of b, 1 of a: 31 registers. A step of k loads 10 numbers for 25 fmas.
void multiply(Processor& p) {
  constexpr int kTile = 5;
  constexpr int kRow = kTile * kTile, kFactor = kRow + kTile;
  for (long i = 0; i + kTile <= p.rows; i += kTile) {
    for (long j = 0; j + kTile <= p.columns; j += kTile) {
      const int height = static_cast<int>(std::min<long>(kTile, p.rows - i));
      const int width = static_cast<int>(std::min<long>(kTile, p.columns - j));
      for (int s = 0; s < kTile * kTile; s++) p.clear(s);
      for (long k = 0; k < p.depth; k++) {
        for (int w = 0; w < width; w++) p.load_b(kRow + w, k, j + w);
        for (int h = 0; h < height; h++) {
          p.load_a(kFactor, i + h, k);
          for (int w = 0; w < width; w++) p.fma(kTile * h + w, kFactor, kRow + w);
        }
      }
      for (int h = 0; h < height; h++)
        for (int w = 0; w < width; w++) p.store(kTile * h + w, i + h, j + w);
    }
  }
}

}  // namespace exercise
