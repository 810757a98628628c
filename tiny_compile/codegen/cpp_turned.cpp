// How is a square of a buffer transposed? Sixteen vectors of sixteen at a time, in registers, so that
// every line is fetched once:
//
//   tc_turn(x, 4096, turned0, 128, 100)   =>   turned0[r*128 + c] = x[c*4096 + r], r < 128, c < 100
#include "tiny_compile/codegen/cpp_turned.h"

#include "tiny_compile/tile/square.h"

namespace tiny_compile {
namespace {

// Sixteen vectors of sixteen become their transpose in four steps, each of which swaps the
// blocks off the diagonal.
constexpr const char* kTurn = R"(
#if defined(__AVX512F__)
typedef float tc_lanes __attribute__((vector_size(64), aligned(4), may_alias));

template <int step, int... lane>
TC_FN void tc_swap_blocks(tc_lanes& a, tc_lanes& b) {
  const tc_lanes upper = __builtin_shufflevector(a, b, (lane & step ? 16 + lane - step : lane)...);
  b = __builtin_shufflevector(a, b, (lane & step ? 16 + lane : lane + step)...);
  a = upper;
}

template <int step>
TC_FN void tc_turn_step(tc_lanes* square) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++)
    if (!(i & step))
      tc_swap_blocks<step, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(
          square[i], square[i + step]);
}

static inline void tc_turn_16(const float* from, long long stride, float* to) {
  tc_lanes square[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    square[i] = *(const tc_lanes*)(from + i * stride);
    __builtin_prefetch(from + i * stride + SIDE);  // the next square's
  }
  tc_turn_step<8>(square);
  tc_turn_step<4>(square);
  tc_turn_step<2>(square);
  tc_turn_step<1>(square);
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) *(tc_lanes*)(to + i * SIDE) = square[i];
}
#endif

// to[r*SIDE + c] = from[c*stride + r]
template <typename T>
static inline void tc_turn(const T* from, long long stride, T* to, long long rows,
                           long long columns) {
  for (long long r = 0; r < rows; r += 16) {
    for (long long c = 0; c < columns; c += 16) {
#if defined(__AVX512F__)
      if (sizeof(T) == 4 && rows - r >= 16 && columns - c >= 16) {
        tc_turn_16((const float*)from + c * stride + r, stride, (float*)to + r * SIDE + c);
        continue;
      }
#endif
      for (long long l = c; l < c + 16 && l < columns; l++)
        for (long long k = r; k < r + 16 && k < rows; k++) to[k * SIDE + l] = from[l * stride + k];
    }
  }
}
)";

}  // namespace

std::string turned_helpers(const Calls& calls) {
  if (!calls.has("tc_turn")) return "";
  std::string text = kTurn;
  for (size_t at = 0; (at = text.find("SIDE", at)) != std::string::npos;)
    text.replace(at, 4, std::to_string(kSquare));
  return text;
}

}  // namespace tiny_compile
