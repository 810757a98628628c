// The shared arithmetic: what one scalar op computes, in text that three compilers read.
//
// The interpreter includes it (base/math.h), generated C++ and CUDA paste the definitions they
// use. No headers, no libm but exact functions; every fma is written out and contraction is off
// everywhere, so all of them compute the same bits. Definitions stand between blank lines.
// TC_FN (linkage) and TC_FAIL(bits) (raises an error bit) come from the includer.

struct tc_f16 {
  unsigned short bits;
};

struct tc_bf16 {
  unsigned short bits;
};

TC_FN unsigned tc_bits(float x) {
#ifdef __CUDACC__
  return __float_as_uint(x);
#else
  return __builtin_bit_cast(unsigned, x);
#endif
}

TC_FN unsigned long long tc_bits(double x) {
#ifdef __CUDACC__
  return (unsigned long long)__double_as_longlong(x);
#else
  return __builtin_bit_cast(unsigned long long, x);
#endif
}

TC_FN float tc_from_bits(unsigned bits) {
#ifdef __CUDACC__
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}

TC_FN double tc_from_bits(unsigned long long bits) {
#ifdef __CUDACC__
  return __longlong_as_double((long long)bits);
#else
  return __builtin_bit_cast(double, bits);
#endif
}

TC_FN float tc_fma(float a, float b, float c) {
#ifdef __CUDACC__
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

TC_FN double tc_fma(double a, double b, double c) {
#ifdef __CUDACC__
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

TC_FN float tc_sqrt(float x) {
#ifdef __CUDACC__
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

TC_FN double tc_sqrt(double x) {
#ifdef __CUDACC__
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

TC_FN float tc_floor(float x) {
#ifdef __CUDACC__
  return floorf(x);
#else
  return __builtin_floorf(x);
#endif
}

TC_FN double tc_floor(double x) {
#ifdef __CUDACC__
  return floor(x);
#else
  return __builtin_floor(x);
#endif
}

TC_FN float tc_ceil(float x) {
#ifdef __CUDACC__
  return ceilf(x);
#else
  return __builtin_ceilf(x);
#endif
}

TC_FN double tc_ceil(double x) {
#ifdef __CUDACC__
  return ceil(x);
#else
  return __builtin_ceil(x);
#endif
}

TC_FN float tc_trunc(float x) {
#ifdef __CUDACC__
  return truncf(x);
#else
  return __builtin_truncf(x);
#endif
}

TC_FN double tc_trunc(double x) {
#ifdef __CUDACC__
  return trunc(x);
#else
  return __builtin_trunc(x);
#endif
}

// To the nearest integer, halves to even.
TC_FN float tc_round(float x) {
#ifdef __CUDACC__
  return rintf(x);
#else
  return __builtin_rintf(x);
#endif
}

TC_FN double tc_round(double x) {
#ifdef __CUDACC__
  return rint(x);
#else
  return __builtin_rint(x);
#endif
}

// Exact in every C library, by definition.
TC_FN float tc_fmod(float a, float b) {
#ifdef __CUDACC__
  return fmodf(a, b);
#else
  return __builtin_fmodf(a, b);
#endif
}

TC_FN double tc_fmod(double a, double b) {
#ifdef __CUDACC__
  return fmod(a, b);
#else
  return __builtin_fmod(a, b);
#endif
}

// A GPU's instructions take |x| as an operand, if they are asked in this way.
TC_FN float tc_abs(float x) {
#ifdef __CUDACC__
  return fabsf(x);
#else
  return tc_from_bits(tc_bits(x) & 0x7fffffffu);
#endif
}

TC_FN double tc_abs(double x) { return tc_from_bits(tc_bits(x) & 0x7fffffffffffffffull); }

// -0.0 that NVRTC 13.0 cannot see: it makes (float)(c ? 0 : -1) of c ? -0.0f : -1.0f,
// which is +0.
TC_FN float tc_minus_zero() {
#ifdef __CUDACC__
  float zero;
  asm("mov.b32 %0, 0x80000000;" : "=f"(zero));
  return zero;
#else
  return -0.0f;
#endif
}

TC_FN float tc_copysign(float x, float sign) {
#ifdef __CUDACC__
  unsigned bits;  // sign where the mask has a 0, x where it has a 1: two instructions otherwise
  asm("lop3.b32 %0, %1, %2, 0x7fffffff, 0xe4;"
      : "=r"(bits)
      : "r"(tc_bits(x)), "r"(tc_bits(sign)));
  return tc_from_bits(bits);
#else
  return tc_from_bits((tc_bits(x) & 0x7fffffffu) | (tc_bits(sign) & 0x80000000u));
#endif
}

TC_FN double tc_copysign(double x, double sign) {
  return tc_from_bits((tc_bits(x) & 0x7fffffffffffffffull) |
                      (tc_bits(sign) & 0x8000000000000000ull));
}

// Conversions between compute types. Float to integer saturates and NaN gives 0; integer to
// integer wraps; to bool is x != 0.
template <typename To>
struct tc_range {
  static constexpr bool is_signed = (To)-1 < (To)0;
  static constexpr int bits = 8 * (int)sizeof(To) - (is_signed ? 1 : 0);
  static constexpr To high = (To)(((((unsigned long long)1 << (bits - 1)) - 1) << 1) | 1);
  static constexpr To low = is_signed ? (To)(-high - 1) : (To)0;
};

// What is below 1 becomes 0 by hand: g++ -fno-trapping-math makes (float)(int)x a trunc(x), and
// trunc(-0.5) is -0. Selects, no branches: loops over it become vector code. NaN is what fails
// every comparison: asked as x != x, NVRTC 13.0 forgets it where x is an absolute value.
template <typename To, typename From>
TC_FN To tc_saturate(From x) {
  const From above = (From)2 * (From)((unsigned long long)1 << (tc_range<To>::bits - 1));
  const bool inside = x < above && x >= (tc_range<To>::is_signed ? -above : (From)0);
  const bool small = x < (From)1 && x > (From)-1;
  const To kept = (To)(inside && !small ? x : (From)0);
  const To beyond = x >= above ? tc_range<To>::high : x < (From)0 ? tc_range<To>::low : (To)0;
  return inside || small ? kept : beyond;
}

// The same of f32, of one instruction (PTX ISA, cvt), for integers of 8 and 32 bits.
#ifdef __CUDACC__
template <typename To>
TC_FN To tc_truncated(float x) {
  int result;
  if (sizeof(To) == 1 && tc_range<To>::is_signed)
    asm("cvt.rzi.s8.f32 %0, %1;" : "=r"(result) : "f"(x));
  else if (sizeof(To) == 1)
    asm("cvt.rzi.u8.f32 %0, %1;" : "=r"(result) : "f"(x));
  else if (tc_range<To>::is_signed)
    asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(result) : "f"(x));
  else
    asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(result) : "f"(x));
  return (To)result;
}
#endif

template <typename To>
struct tc_convert {
  template <typename From>
  TC_FN To from(From x) {
    return (To)x;
  }
  // g++ 12 takes the mask of a vector of bools, all bits, for what they are, where a minimum follows: of
  // bytes anywhere, of words where vectors have 32 bytes.
  TC_FN To from(bool x) { return (To)(-(int)x & 1); }
  TC_FN To from(float x) {
#ifdef __CUDACC__
    if (sizeof(To) == 1 || sizeof(To) == 4) return tc_truncated<To>(x);
#endif
    return tc_saturate<To>(x);
  }
  TC_FN To from(double x) { return tc_saturate<To>(x); }
};

template <>
struct tc_convert<float> {
  template <typename From>
  TC_FN float from(From x) {
    return (float)x;
  }
};

template <>
struct tc_convert<double> {
  template <typename From>
  TC_FN double from(From x) {
    return (double)x;
  }
};

template <>
struct tc_convert<bool> {
  template <typename From>
  TC_FN bool from(From x) {
    return x != (From)0;
  }
};

template <typename To, typename From>
TC_FN To tc_cast(From x) {
  return tc_convert<To>::from(x);
}

// Unsigned arithmetic of at least 32 bits: wraps, and never overflows an int.
template <int Size>
struct tc_unsigned {
  typedef unsigned type;
};

template <>
struct tc_unsigned<8> {
  typedef unsigned long long type;
};

template <typename T>
TC_FN T tc_add(T a, T b) {
  typedef typename tc_unsigned<(int)sizeof(T)>::type U;
  return (T)((U)a + (U)b);
}

TC_FN float tc_add(float a, float b) { return a + b; }

TC_FN double tc_add(double a, double b) { return a + b; }

// On GPUs the NOT hides the subtraction from ptxas 13.0: VIMNMX3 of negated integers is wrong.
template <typename T>
TC_FN T tc_sub(T a, T b) {
  typedef typename tc_unsigned<(int)sizeof(T)>::type U;
#ifdef __CUDACC__
  if (sizeof(T) == 4) {
    unsigned inverted;
    asm("not.b32 %0, %1;" : "=r"(inverted) : "r"((unsigned)b));
    return (T)((unsigned)a + inverted + 1u);
  }
#endif
  return (T)((U)a - (U)b);
}

template <typename T>
TC_FN T tc_mul(T a, T b) {
  typedef typename tc_unsigned<(int)sizeof(T)>::type U;
  return (T)((U)a * (U)b);
}

TC_FN float tc_mul(float a, float b) { return a * b; }

TC_FN double tc_mul(double a, double b) { return a * b; }

// Not -x: g++ makes -(a * b + c) a fused -a * b - c, which is +0 where the first is -0.
TC_FN float tc_neg(float x) { return tc_from_bits(tc_bits(x) ^ 0x80000000u); }

TC_FN double tc_neg(double x) { return tc_from_bits(tc_bits(x) ^ 0x8000000000000000ull); }

template <typename T>
TC_FN T tc_neg(T a) {
  return tc_sub<T>((T)0, a);
}

template <typename T>
TC_FN T tc_abs(T a) {
  return a < (T)0 ? tc_neg<T>(a) : a;
}

template <typename T>
TC_FN T tc_sign(T a) {
  return (T)((a > (T)0) - (a < (T)0));
}

TC_FN float tc_sign(float a) { return a != a ? a : a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : 0.0f; }

TC_FN double tc_sign(double a) { return a != a ? a : a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : 0.0; }

// Where a branch says what a is, ptxas of CUDA 12.1 to 13.1 forgets the ~ of ~a & c; -1 - a it keeps.
template <typename T>
TC_FN T tc_not(T a) {
#ifdef __CUDACC__
  long long value = a;
  asm("sub.s64 %0, -1, %0;" : "+l"(value));
  return (T)value;
#else
  return (T)~a;
#endif
}

TC_FN bool tc_not(bool a) { return !a; }

// x != x; in words that NVRTC takes as they are (it forgot that question for some |y|).
TC_FN bool tc_is_nan(float x) {
#ifdef __CUDACC__
  unsigned nan;
  asm("{\n.reg .pred p;\nsetp.nan.f32 p, %1, %1;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(nan)
      : "f"(x));
  return nan != 0;
#else
  return x != x;
#endif
}

TC_FN bool tc_is_nan(double x) {
#ifdef __CUDACC__
  unsigned nan;
  asm("{\n.reg .pred p;\nsetp.nan.f64 p, %1, %1;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(nan)
      : "d"(x));
  return nan != 0;
#else
  return x != x;
#endif
}

template <typename T>
TC_FN T tc_minimum(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
TC_FN T tc_maximum(T a, T b) {
  return a < b ? b : a;
}

// NaN in either operand gives NaN; of two zeros, minimum prefers -0 and maximum +0.
TC_FN float tc_minimum(float a, float b) {
#ifdef __CUDACC__
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  const float less = a < b ? a : b;
  const float result = a == b ? tc_from_bits(tc_bits(a) | tc_bits(b)) : less;
  return a != a ? a : result;
#endif
}

TC_FN float tc_maximum(float a, float b) {
#ifdef __CUDACC__
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  const float more = a > b ? a : b;
  const float result = a == b ? tc_from_bits(tc_bits(a) & tc_bits(b)) : more;
  return a != a ? a : result;
#endif
}

TC_FN double tc_minimum(double a, double b) {
  const double less = a < b ? a : b;
  const double result = a == b ? tc_from_bits(tc_bits(a) | tc_bits(b)) : less;
  return a != a ? a : result;
}

TC_FN double tc_maximum(double a, double b) {
  const double more = a > b ? a : b;
  const double result = a == b ? tc_from_bits(tc_bits(a) & tc_bits(b)) : more;
  return a != a ? a : result;
}

// The result has the divisor's sign (Python's %). Of integers, x % 0 is 0 and an error.
template <typename T>
TC_FN T tc_remainder(T a, T b) {
  if (b == (T)0) {
    TC_FAIL(2u);
    return (T)0;
  }
  if (tc_range<T>::is_signed && b == (T)-1) return (T)0;
  const T rest = (T)(a % b);
  return rest != (T)0 && (rest < (T)0) != (b < (T)0) ? (T)(rest + b) : rest;
}

TC_FN float tc_remainder(float a, float b) {
  const float rest = tc_fmod(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

TC_FN double tc_remainder(double a, double b) {
  const double rest = tc_fmod(a, b);
  return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

// Rounds towards -infinity. Of integers, x / 0 is 0 and an error.
template <typename T>
TC_FN T tc_floor_divide(T a, T b) {
  if (b == (T)0) {
    TC_FAIL(2u);
    return (T)0;
  }
  if (tc_range<T>::is_signed && b == (T)-1) return tc_neg<T>(a);
  const T quotient = (T)(a / b), rest = (T)(a % b);
  return rest != (T)0 && (rest < (T)0) != (b < (T)0) ? (T)(quotient - 1) : quotient;
}

// From the exact remainder, so that 1.0 // 0.1 is 9 (PyTorch's and Python's definition).
TC_FN float tc_floor_divide(float a, float b) {
  if (b == 0.0f) return a / b;
  const float rest = tc_fmod(a, b);
  float quotient = (a - rest) / b;
  if (rest != 0.0f && (rest < 0.0f) != (b < 0.0f)) quotient -= 1.0f;
  if (quotient == 0.0f) return tc_copysign(0.0f, a / b);
  const float whole = tc_floor(quotient);
  return quotient - whole > 0.5f ? whole + 1.0f : whole;
}

TC_FN double tc_floor_divide(double a, double b) {
  if (b == 0.0) return a / b;
  const double rest = tc_fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0.0 && (rest < 0.0) != (b < 0.0)) quotient -= 1.0;
  if (quotient == 0.0) return tc_copysign(0.0, a / b);
  const double whole = tc_floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}
