// How is a square of a buffer transposed? As many vectors as one has lanes at a time, in registers, so that
// every line is fetched once:
//
//   tc_turn(x, 4096, transposed0, 128, 100)   =>   transposed0[r*128 + c] = x[c*4096 + r], r < 128, c < 100
#include "tiny_compile/codegen/cpp_transposed.h"

#include <utility>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/tile/square.h"

namespace tiny_compile {
namespace {

// The vectors of a block become its transpose in steps, each of which swaps the blocks of half the size off the
// diagonal. Of halves and bytes a word of as many lines' elements is what changes places: two blocks, or four.
constexpr const char* kTurn = R"(
typedef unsigned tc_lanes __attribute__((vector_size(BYTES), aligned(1), may_alias));

template <int step, int... lane>
TC_FN void tc_swap_blocks(tc_lanes& a, tc_lanes& b) {
  const tc_lanes upper = __builtin_shufflevector(a, b, (lane & step ? LANES + lane - step : lane)...);
  b = __builtin_shufflevector(a, b, (lane & step ? LANES + lane : lane + step)...);
  a = upper;
}

// Element `part` of each word of so many lines, in a word.
template <int parts>
TC_FN tc_lanes tc_words_of(const char* from, long long stride, int part) {
  if (parts == 1) return *(const tc_lanes*)from;
  constexpr int bits = 32 / parts;
  tc_lanes words = {};
#pragma GCC unroll 4
  for (int p = 0; p < parts; p++) {
    const tc_lanes line = *(const tc_lanes*)(from + p * stride);
    words |= ((line >> (unsigned)(bits * part)) & ((1u << (bits & 31)) - 1)) << (unsigned)(bits * p);
    if (part == 0) __builtin_prefetch(from + p * stride + SIDE * (4 / parts));  // the next square's
  }
  return words;
}

// Strides are bytes.
template <int parts>
static inline void tc_turn_block(const char* from, long long stride, char* to) {
#pragma GCC unroll 4
  for (int part = 0; part < parts; part++) {
    tc_lanes block[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
      block[i] = tc_words_of<parts>(from + i * parts * stride, stride, part);
      if (parts == 1) __builtin_prefetch(from + i * stride + SIDE * 4);
    }
STEPS#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
      *(tc_lanes*)(to + (i * parts + part) * SIDE * (4 / parts)) = block[i];
  }
}

// to[r*SIDE + c] = from[c*stride + r]
template <typename T>
static inline void tc_turn(const T* from, long long stride, T* to, long long rows,
                           long long columns) {
  constexpr int parts = sizeof(T) < 4 ? 4 / sizeof(T) : 1, side = LANES * parts;
  if (sizeof(T) > 4 || rows < side || columns < side) {
    for (long long r = 0; r < rows; r += LANES)
      for (long long c = 0; c < columns; c += LANES)
        for (long long l = c; l < c + LANES && l < columns; l++)
          for (long long k = r; k < r + LANES && k < rows; k++)
            to[k * SIDE + l] = from[l * stride + k];
    return;
  }
  for (long long k = 0; k < rows; k += side) {
    for (long long l = 0; l < columns; l += side) {  // the last ones begin within those before
      const long long r = k < rows - side ? k : rows - side;
      const long long c = l < columns - side ? l : columns - side;
      tc_turn_block<parts>((const char*)(from + c * stride + r), stride * (long long)sizeof(T),
                           (char*)(to + r * SIDE + c));
    }
  }
}
)";

// One step for each power of two below the lanes.
std::string steps(int64_t lanes) {
  std::vector<std::string> all;
  for (int64_t lane = 0; lane < lanes; lane++) all.push_back(str(lane));
  std::string text;
  for (int64_t step = lanes / 2; step > 0; step /= 2)
    text += str("#pragma GCC unroll 16\n    for (int i = 0; i < ", lanes,
                "; i++)\n      if (!(i & ", step, ")) tc_swap_blocks<", step, ", ",
                join(all, ", "), ">(block[i], block[i + ", step, "]);\n");
  return text;
}

}  // namespace

std::string transposed_helpers(const Calls& calls, int64_t vector) {
  if (!calls.has("tc_turn")) return "";
  const int64_t lanes = vector / 4;
  std::string text = replace_all(kTurn, "STEPS", steps(lanes));
  text = replace_all(std::move(text), "SIDE", str(kSquare));
  text = replace_all(std::move(text), "LANES", str(lanes));
  return replace_all(std::move(text), "BYTES", str(vector));
}

}  // namespace tiny_compile
