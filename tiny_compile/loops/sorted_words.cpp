// What does a sort in runs leave for the merge behind it?
//
//   temp p: u64[5000]   sort p[j0] for (j0: 5000) = argsort load x[j0] in 2048     3 -1.5  =>  0x403fffff'00000001,
//                                                                                              0xc0400000'00000000
#include "tiny_compile/loops/sorted_words.h"

#include <cstring>
#include <type_traits>

#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {
namespace {

// -0 = 0, and NaN is above all; a half's are those of an f32.
uint32_t ordered_bits(float value) {
  if (value != value) return ~uint32_t{0};
  const float plus = value + 0.0f;
  uint32_t bits = 0;
  std::memcpy(&bits, &plus, sizeof bits);
  return bits >> 31 ? ~bits : bits | uint32_t{1} << 31;
}

template <typename T>
uint32_t ordered(T key) {
  if constexpr (std::is_integral_v<T>) {
    constexpr uint64_t least = std::is_signed_v<T> ? uint64_t{1} << (8 * sizeof(T) - 1) : 0;
    return static_cast<uint32_t>(static_cast<uint64_t>(key) + least);
  } else {
    return ordered_bits(static_cast<float>(key));
  }
}

template <typename Word, typename T>
std::vector<std::byte> words(const T* keys, const int64_t* places, size_t count, bool down,
                             const WordBits& bits) {
  std::vector<Word> all(count);
  for (size_t k = 0; k < count; k++) {
    uint32_t key = ordered(keys[places[k]]);
    if (down) key = ~key;
    all[k] =
        static_cast<Word>(key >> bits.dropped) << bits.place | static_cast<Word>(places[k]);
  }
  std::vector<std::byte> bytes(count * sizeof(Word));
  if (count > 0) std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

WordBits bits_of(const Kernel& kernel, const Step& sort) {
  return word_bits(kernel.scalars[sort.value].dtype, most_places(kernel, sort));
}

}  // namespace

DType dtype_of_words(const Kernel& kernel, const Step& sort) {
  const WordBits bits = bits_of(kernel, sort);
  return bits.place == 0 ? DType::i64 : dtype_of(bits);
}

std::vector<std::byte> words_of_places(const Kernel& kernel, const Step& sort,
                                       const std::byte* values,
                                       const std::vector<std::byte>& places) {
  const WordBits bits = bits_of(kernel, sort);
  const bool down = sort.op == Op::argsort_descending;
  const auto* at = reinterpret_cast<const int64_t*>(places.data());
  const size_t count = places.size() / sizeof(int64_t);
  return with_type(kernel.scalars[sort.value].dtype, [&](auto zero) {
    const auto* keys = reinterpret_cast<const decltype(zero)*>(values);
    return bits.words == 1 ? words<uint32_t>(keys, at, count, down, bits)
                           : words<uint64_t>(keys, at, count, down, bits);
  });
}

}  // namespace tiny_compile
