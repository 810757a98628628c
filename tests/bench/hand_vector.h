// Vectors of 16 floats, as the peers written by hand use them.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstring>

namespace hand {

constexpr long kLanes = 16;
typedef float Vector __attribute__((vector_size(64)));

inline Vector load(const float* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(float* p, Vector v) { std::memcpy(p, &v, sizeof v); }

// Past the caches; p is 64-byte aligned.
inline void stream(float* p, Vector v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, std::bit_cast<__m512>(v));
#elif defined(__x86_64__)
  struct Quarters {
    __m128 part[4];
  };
  const auto quarters = std::bit_cast<Quarters>(v);
  for (int i = 0; i < 4; ++i) _mm_stream_ps(p + 4 * i, quarters.part[i]);
#else
  store(p, v);
#endif
}

}  // namespace hand
