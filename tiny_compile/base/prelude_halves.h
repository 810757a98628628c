// f16 and bf16 of the prelude (see prelude.h): kept in 16 bits, computed with as f32.

// bf16 is the upper half of an f32.
TC_FN float tc_to_f32(tc_bf16 x) { return tc_from_bits((unsigned)x.bits << 16); }

// An f16's exponent is moved from bias 15 to 127; a denormal is normalised by a subtraction.
TC_FN float tc_to_f32(tc_f16 x) {
#ifdef __CUDACC__
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#else
  const unsigned sign = (x.bits & 0x8000u) << 16, magnitude = (x.bits & 0x7fffu) << 13;
  const unsigned moved = magnitude + 0x38000000u;
  const float denormal = tc_from_bits(magnitude + 0x38800000u) - tc_from_bits(0x38800000u);
  const unsigned special = moved + 0x38000000u;
  const unsigned bits = magnitude >= 0x0f800000u  ? special
                        : magnitude < 0x00800000u ? tc_bits(denormal)
                                                  : moved;
  return tc_from_bits(sign | bits);
#endif
}

// Nearest, ties to even, as are all conversions to a narrower float.
TC_FN tc_bf16 tc_to_bf16(float x) {
#ifdef __CUDACC__
  unsigned pair;  // 0 and x: pairs are converted many times as fast
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return tc_bf16{(unsigned short)pair};
#else
  const unsigned bits = tc_bits(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const unsigned nan = (bits >> 16) | 0x40u;
  return tc_bf16{(unsigned short)(x != x ? nan : rounded)};
#endif
}

TC_FN tc_f16 tc_to_f16(float x) {
#ifdef __CUDACC__
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return tc_f16{(unsigned short)pair};
#else
  const unsigned sign = tc_bits(x) & 0x80000000u, bits = tc_bits(x) ^ sign;
  const unsigned special = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const unsigned denormal = tc_bits(tc_from_bits(bits) + 0.5f) - 0x3f000000u;
  const unsigned normal = (bits + 0xc8000fffu + ((bits >> 13) & 1u)) >> 13;
  const unsigned result = bits >= 0x47800000u  ? special
                          : bits < 0x38800000u ? denormal
                                               : normal;
  return tc_f16{(unsigned short)(result | (sign >> 16))};
#endif
}

// Two of them, rounded by one instruction.
TC_FN unsigned tc_pair(float low, float high, tc_bf16) {
#ifdef __CUDACC__
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (unsigned)tc_to_bf16(high).bits << 16 | tc_to_bf16(low).bits;
#endif
}

TC_FN unsigned tc_pair(float low, float high, tc_f16) {
#ifdef __CUDACC__
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (unsigned)tc_to_f16(high).bits << 16 | tc_to_f16(low).bits;
#endif
}

// The f32 below or equal in magnitude, its last bit set where bits were lost: rounding it again
// to a half rounds the double once.
TC_FN float tc_round_to_odd(double x) {
  const float nearest = (float)x;
  if ((double)nearest == x || x != x) return nearest;
  const unsigned bits = tc_bits(nearest);
  const bool beyond = tc_abs((double)nearest) > tc_abs(x);
  return tc_from_bits((beyond ? bits - 1u : bits) | 1u);
}

TC_FN tc_bf16 tc_to_bf16(double x) { return tc_to_bf16(tc_round_to_odd(x)); }

TC_FN tc_f16 tc_to_f16(double x) { return tc_to_f16(tc_round_to_odd(x)); }

// The nearest bf16, as an f32.
TC_FN float tc_round_bf16(float x) {
#ifdef __CUDACC__
  unsigned pair;  // x and 0: an f32 as it is
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.0f));
  return tc_from_bits(pair);
#else
  return tc_to_f32(tc_to_bf16(x));
#endif
}

TC_FN float tc_round_bf16(double x) { return tc_round_bf16(tc_round_to_odd(x)); }

// The nearest f16, as an f32: below 2^-14 its last bit stands for 2^-24, as that of 0.5f does; from
// 65520 on it is inf.
TC_FN float tc_round_f16(float x) {
#ifdef __CUDACC__
  return tc_to_f32(tc_to_f16(x));
#else
  const unsigned sign = tc_bits(x) & 0x80000000u, bits = tc_bits(x) ^ sign;
  const unsigned special = bits > 0x7f800000u ? bits : 0x7f800000u;
  const unsigned denormal = tc_bits((tc_from_bits(bits) + 0.5f) - 0.5f);
  const unsigned normal = (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
  const unsigned result = bits >= 0x477ff000u  ? special
                          : bits < 0x38800000u ? denormal
                                               : normal;
  return tc_from_bits(sign | result);
#endif
}

TC_FN float tc_round_f16(double x) { return tc_to_f32(tc_to_f16(x)); }

// The bits of an f16 as a bf16, a NaN's as the quiet one's, and those of a bf16 as an f16.
TC_FN float tc_f16_as_bf16(float x) {
  return tc_from_bits((tc_is_nan(x) ? 0x7e00u : (unsigned)tc_to_f16(x).bits) << 16);
}

TC_FN float tc_bf16_as_f16(float x) {
  return tc_to_f32(tc_f16{(unsigned short)(tc_bits(x) >> 16)});
}

// The bf16 that x is already.
TC_FN tc_bf16 tc_exact_bf16(float x) { return tc_bf16{(unsigned short)(tc_bits(x) >> 16)}; }
