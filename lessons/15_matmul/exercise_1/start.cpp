#include "exercise.h"

namespace exercise {

void multiply(Processor& p) {
  enum { sum, x, y };
  for (long i = 0; i < p.rows; i++) {
    for (long j = 0; j < p.columns; j++) {
      // TODO: 3 of 32 registers are in use.
      p.clear(sum);
      for (long k = 0; k < p.depth; k++) {
        p.load_a(x, i, k);
        p.load_b(y, k, j);
        p.fma(sum, x, y);
      }
      p.store(sum, i, j);
    }
  }
}

}  // namespace exercise
