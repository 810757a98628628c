// fails: brighten, compiled
#include "exercise.h"

namespace exercise {

Bytes brighten_bytes(int64_t rows, int64_t columns) {
  const int64_t x = 4 * rows * columns;
  return {.eager = 3 * (x + x), .compiled = x};
}

Bytes add_bias_bytes(int64_t rows, int64_t columns) {
  const int64_t x = 4 * rows * columns, bias = 4 * columns;
  return {.eager = (x + bias + x) + (x + x), .compiled = x + bias + x};
}

Bytes normalise_bytes(int64_t rows, int64_t columns) {
  const int64_t x = 4 * rows * columns, total = 4 * rows;
  return {.eager = (x + total) + (x + total + x), .compiled = x + x};
}

}  // namespace exercise
