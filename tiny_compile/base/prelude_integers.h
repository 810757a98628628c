// What of the prelude (see prelude.h) only integers have: shifts, counts of bits, powers by
// multiplication.

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
