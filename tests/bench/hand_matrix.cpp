// How fast can memory be read across its grain? A transposed read goes through squares of 16
// vectors of 16 that are transposed in registers, so that every cache line is read once, whole, and
// written once; column sums keep eight rows in flight and their totals in L1.
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tests/bench/hand.h"
#include "tests/bench/hand_vector.h"

namespace hand {
namespace {

// Swaps the blocks of 2^k lanes off the diagonal: one step of turning a square.
template <int kStep, int... kLane>
void swap_blocks(Vector& a, Vector& b, std::integer_sequence<int, kLane...>) {
  const Vector upper =
      __builtin_shufflevector(a, b, (kLane & kStep ? 16 + kLane - kStep : kLane)...);
  b = __builtin_shufflevector(a, b, (kLane & kStep ? 16 + kLane : kLane + kStep)...);
  a = upper;
}

template <int kStep>
void turn_step(Vector* square) {
  for (int i = 0; i < 16; ++i) {
    if (!(i & kStep))
      swap_blocks<kStep>(square[i], square[i + kStep], std::make_integer_sequence<int, 16>());
  }
}

// square[i][j] <-> square[j][i]
void turn(Vector* square) {
  turn_step<8>(square);
  turn_step<4>(square);
  turn_step<2>(square);
  turn_step<1>(square);
}

// out rows i..i+15, columns j..j+15.
void square_add(const float* x, const float* y, float* out, long rows, long columns, long i,
                long j) {
  Vector square[16];
  for (long k = 0; k < 16; ++k) {
    square[k] = load(x + (j + k) * rows + i);
    __builtin_prefetch(x + (j + k + 32) * rows + i);
  }
  turn(square);
  for (long k = 0; k < 16; ++k) {
    const long at = (i + k) * columns + j;
    stream(out + at, square[k] + load(y + at));
  }
}

// totals[c] += eight rows of x
void add_eight_rows(const float* x, float* totals, long columns) {
  for (long c = 0; c < columns; c += kLanes) {
    Vector v[8];
    for (long k = 0; k < 8; ++k) v[k] = load(x + k * columns + c);
    store(totals + c,
          load(totals + c) + ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
  }
}

}  // namespace

void transpose_add(const float* x, const float* y, float* out, long rows, long columns,
                   int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (long i = 0; i < rows; i += 16) {
    for (long j = 0; j < columns; j += 16) square_add(x, y, out, rows, columns, i, j);
  }
}

void column_sums(const float* x, float* out, long rows, long columns, int threads) {
  constexpr long kWidest = 16384;
  alignas(64) static float totals[64][kWidest];
  threads = std::min(threads, 64);
#pragma omp parallel num_threads(threads)
  {
    float* mine = totals[omp_get_thread_num()];
    std::fill(mine, mine + columns, 0.0f);
#pragma omp for schedule(static)
    for (long r = 0; r < rows; r += 8) add_eight_rows(x + r * columns, mine, columns);
  }
  std::copy(totals[0], totals[0] + columns, out);
  for (int t = 1; t < threads; ++t) {
    for (long c = 0; c < columns; ++c) out[c] += totals[t][c];
  }
}

}  // namespace hand
