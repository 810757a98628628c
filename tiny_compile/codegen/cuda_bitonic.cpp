// How do threads sort without memory? By Batcher's bitonic sort: each holds some neighbours of the
// row in registers, compares them with each other, then with those of another lane, by a shuffle, or,
// where many warps share a row, of another warp, through shared memory. What is compared is one word:
//
//   f32 key, place           =>   unsigned long long: the key's bits in order, then the place
//   -1.5 at 3, 2.0 at 1      =>   0x403fffff'00000003 < 0xc0000000'00000001
//
// so that a comparison is one of integers, NaN comes last and equals stay in order. Every comparator
// puts the lesser first: two sorted lists are merged by comparing one with the other reversed. Where
// only the first k of the row are kept, a merge of lists of k keeps the lesser of each comparison,
// and both sides go on with the same list.
#include "tiny_compile/codegen/cuda_bitonic.h"

#include <algorithm>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/scalar.h"

namespace tiny_compile {
namespace {

constexpr const char* kNetwork = R"(
// Sorts:
struct tc_wide_word {
  unsigned long long key;
  long long place;
};

__device__ inline bool operator<(const tc_wide_word& a, const tc_wide_word& b) {
  return (a.key < b.key) | ((a.key == b.key) & (a.place < b.place));
}

template <class Word>
__device__ inline Word tc_of_lane(Word word, int mask) {
  return __shfl_xor_sync(0xffffffffu, word, mask);
}
__device__ inline tc_wide_word tc_of_lane(tc_wide_word word, int mask) {
  return {__shfl_xor_sync(0xffffffffu, word.key, mask),
          __shfl_xor_sync(0xffffffffu, word.place, mask)};
}

template <class Word>
__device__ inline void tc_in_order(Word& a, Word& b) {
  const bool swaps = b < a;
  const Word least = swaps ? b : a;
  b = swaps ? a : b;
  a = least;
}

// The thread's own words in order, if the greatest of each list before `apart` is no greater than
// the least behind it, or they are one list that rises and falls.
template <int From, int R, class Word>
__device__ inline void tc_clean(Word (&words)[R]) {
  #pragma unroll
  for (int apart = From; apart > 0; apart /= 2) {
    #pragma unroll
    for (int r = 0; r < R; r++)
      if (!(r & apart)) tc_in_order(words[r], words[r ^ apart]);
  }
}

template <int Size, int R, class Word>
__device__ inline void tc_sort_own(Word (&words)[R]) {
  if constexpr (Size > 1) {
    tc_sort_own<Size / 2>(words);
    #pragma unroll
    for (int r = 0; r < R; r++)
      if (!(r & Size / 2)) tc_in_order(words[r], words[r ^ (Size - 1)]);
    tc_clean<Size / 4>(words);
  }
}

// Of each word and that of the thread `mask` away the lesser, or the greater; `room` is for words of
// all threads, where those of a row are in several warps.
template <int Threads, bool Reversed, int R, class Word>
__device__ inline void tc_compare(Word (&words)[R], int mask, bool least, Word* room) {
  Word theirs[R];
  if (Threads <= 32 || mask < 32) {
    #pragma unroll
    for (int r = 0; r < R; r++) theirs[r] = tc_of_lane(words[r], mask);
  } else {
    #pragma unroll
    for (int r = 0; r < R; r++) room[r * Threads + threadIdx.x] = words[r];
    __syncthreads();
    #pragma unroll
    for (int r = 0; r < R; r++) theirs[r] = room[r * Threads + (threadIdx.x ^ mask)];
    __syncthreads();
  }
  #pragma unroll
  for (int r = 0; r < R; r++) {
    const Word other = theirs[Reversed ? R - 1 - r : r];
    words[r] = (other < words[r]) == least ? other : words[r];
  }
}

// The words of each row's Threads in order, thread by thread; of lists longer than Kept the first
// Kept, whichever thread begins such a list.
template <int Threads, int Kept, int R, class Word>
__device__ inline void tc_sort_words(Word (&words)[R], Word* room) {
  constexpr int most = Kept > R ? Kept / R : 1;  // threads that hold a list
  const int thread = threadIdx.x % Threads;
  tc_sort_own<R>(words);
  #pragma unroll 1
  for (int half = 1; half < Threads; half *= 2) {
    const int list = half < most ? half : most;
    tc_compare<Threads, true>(words, half ^ (list - 1), half >= most || !(thread & half), room);
    for (int apart = list / 2; apart > 0; apart /= 2)
      tc_compare<Threads, false>(words, apart, !(thread & apart), room);
    tc_clean<R / 2>(words);
  }
}
)";

// The expression for x's bits as an unsigned number in the order of the values; -0 = 0.
std::string ordered(DType key, Calls& calls) {
  switch (key) {
    case DType::i8: return "(unsigned)(x + 128)";
    case DType::i32: return "(unsigned)x ^ 0x80000000u";
    case DType::i64: return "(unsigned long long)x ^ 0x8000000000000000ull";
    case DType::f32: return str("x != x ? ~0u : tc_by_sign(", calls("tc_bits"), "(x + 0.0f))");
    case DType::f64:
      calls.doubles = true;
      return str("x != x ? ~0ull : tc_by_sign(", calls("tc_bits"), "(x + 0.0))");
    default: return "x";
  }
}

constexpr const char* kBySign = R"(
// A float's bits: of negative ones all are turned, of others the sign.
TC_FN unsigned tc_by_sign(unsigned bits) {
  return bits ^ ((unsigned)((int)bits >> 31) | 0x80000000u);
}
TC_FN unsigned long long tc_by_sign(unsigned long long bits) {
  return bits ^ ((unsigned long long)((long long)bits >> 63) | 0x8000000000000000ull);
}

)";

}  // namespace

SortWord::SortWord(DType dtype, bool down, int64_t count) : down_(down) {
  // f16 in a float's bits: the sign, 8 bits of exponent and 10 more.
  dropped_ = dtype == DType::f16 ? 13 : dtype == DType::bf16 ? 16 : 0;
  const int key = dropped_ > 0 ? 32 - dropped_ : static_cast<int>(8 * size_of(dtype));
  if (key < 32 && count <= int64_t{1} << (key < 16 ? 16 : 32 - key)) {
    bits_ = key < 16 ? 16 : 32 - key;
    type = "unsigned";
  } else if (key <= 32 && count <= int64_t{1} << 32) {
    bits_ = 32;
    type = "unsigned long long";
  } else {
    type = "tc_wide_word";
  }
}

std::string SortWord::of(const std::string& key, const std::string& place) const {
  const std::string bits = str(down_ ? "~" : "", "tc_ordered(", key, ")");
  if (is_wide()) return str("{", bits, ", ", place, "}");
  const std::string high =
      bits_ == 32 || dropped_ == 0 ? bits : str("(", bits, " >> ", dropped_, ")");
  return str("(", type, ")", high, " << ", bits_, " | (", type, ")", place);
}

std::string SortWord::behind_all(const std::string& place) const {
  if (is_wide()) return str("tc_wide_word{~0ull, ", place, "}");
  return str("(", type, ")~0u << ", bits_, " | (", type, ")", place);
}

std::string SortWord::place(const std::string& word) const {
  if (is_wide()) return str(word, ".place");
  return bits_ == 32 ? str("(unsigned)", word) : str("(", word, " & ", (1 << bits_) - 1, "u)");
}

SortShape::SortShape(int64_t count, int64_t wanted, int each) {
  const int size = static_cast<int>(power_of_two_from(count));
  kept = static_cast<int>(power_of_two_from(wanted));
  own = std::min(each, size);
  threads = size / own;
  kept = std::max(kept, own);
  rows = is_in_warp() ? 128 / threads : 1;
}

std::string bitonic_helpers(const std::set<DType>& keys, Calls& calls) {
  std::string text = str(kNetwork, kBySign);
  for (const DType key : keys) {
    text += str("TC_FN unsigned ", size_of(key) == 8 ? "long long " : "", "tc_ordered(",
                value_type(key), " x) { return ", ordered(key, calls), "; }\n");
  }
  return text;
}

}  // namespace tiny_compile
