// What of the prelude (see prelude.h) only integers have: rounding to them, shifts, counts of
// bits, powers by multiplication.

// tc_cast<To>(tc_round(x)) for To of 8 or 32 bits, at once.
template <typename To>
TC_FN To tc_nearest(float x) {
#ifdef __CUDACC__
  int result;
  if (sizeof(To) == 1 && tc_range<To>::is_signed)
    asm("cvt.rni.s8.f32 %0, %1;" : "=r"(result) : "f"(x));
  else if (sizeof(To) == 1)
    asm("cvt.rni.u8.f32 %0, %1;" : "=r"(result) : "f"(x));
  else if (tc_range<To>::is_signed)
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(result) : "f"(x));
  else
    asm("cvt.rni.u32.f32 %0, %1;" : "=r"(result) : "f"(x));
  return (To)result;
#else
  return tc_cast<To>(tc_round(x));
#endif
}

// A count of the width or more, or a negative one, shifts everything out.
template <typename T>
TC_FN T tc_shl(T a, T count) {
  typedef typename tc_unsigned<(int)sizeof(T)>::type U;
  const bool out = count < (T)0 || count >= (T)(8 * sizeof(T));
  return out ? (T)0 : (T)((U)a << (out ? 0 : (int)count));
}

template <typename T>
TC_FN T tc_shr(T a, T count) {
  const bool out = count < (T)0 || count >= (T)(8 * sizeof(T));
  return out ? (T)(a < (T)0 ? -1 : 0) : (T)(a >> (out ? 0 : (int)count));
}

template <typename T>
TC_FN T tc_popcount(T a) {
  unsigned long long bits = (unsigned long long)a;
  if (sizeof(T) < 8) bits &= ((unsigned long long)1 << (8 * sizeof(T) % 64)) - 1;
  bits = bits - ((bits >> 1) & 0x5555555555555555ull);
  bits = (bits & 0x3333333333333333ull) + ((bits >> 2) & 0x3333333333333333ull);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
  return (T)((bits * 0x0101010101010101ull) >> 56);
}

// Integer powers wrap; a negative exponent gives 0 but for bases 1 and -1.
template <typename T>
TC_FN T tc_pow(T base, T exponent) {
  if (exponent < (T)0) {  // no branch that says what base is: see tc_not
    const T power = exponent & (T)1 ? base : (T)1;
    const bool one = (base == (T)1) | (tc_range<T>::is_signed & (base == (T)-1));
    return one ? power : (T)0;
  }
  T result = (T)1;
  for (T left = exponent; left != (T)0; left = (T)(left >> 1)) {
    if (left & (T)1) result = tc_mul<T>(result, base);
    base = tc_mul<T>(base, base);
  }
  return result;
}

// The same bits as another type of the same size. Which bits a NaN has depends on the machine, so
// every NaN reads as the quiet one; a bool is a byte of 0 or 1.
template <typename To>
struct tc_reinterpret {
  template <typename From>
  TC_FN To from(From x) {
    return (To)x;
  }
  TC_FN To from(float x) { return (To)(tc_is_nan(x) ? 0x7fc00000u : tc_bits(x)); }
  TC_FN To from(double x) { return (To)(tc_is_nan(x) ? 0x7ff8000000000000ull : tc_bits(x)); }
};

template <>
struct tc_reinterpret<float> {
  template <typename From>
  TC_FN float from(From x) {
    return tc_from_bits((unsigned)x);
  }
};

template <>
struct tc_reinterpret<double> {
  template <typename From>
  TC_FN double from(From x) {
    return tc_from_bits((unsigned long long)x);
  }
};

template <>
struct tc_reinterpret<bool> {
  template <typename From>
  TC_FN bool from(From x) {
    return x != (From)0;
  }
};

template <typename To, typename From>
TC_FN To tc_bitcast(From x) {
  return tc_reinterpret<To>::from(x);
}
