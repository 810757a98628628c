// The shared functions of a real number, in the same form as prelude.h: exp, log and what is
// made of them. f32 within 2 ulp, f64 and pow within 4, over every argument (tests/base/ulp.cpp
// measures them). Branch-free, so that plain loops over them become vector code: a choice is a
// select, and an integer comes from the low bits of a float that 1.5 * 2^23 was added to.
// Polynomials are minimax fits of the function named, computed with 50 digits.

// exp(r) - 1 on [-0.347, 0.347]; `lost` is what r's rounding lost.
TC_FN float tc_expm1_kernel(float r) {
  float p = tc_fma(0x1.6a41f8p-10f, r, 0x1.1239ep-7f);
  p = tc_fma(p, r, 0x1.5558bcp-5f);
  p = tc_fma(p, r, 0x1.555492p-3f);
  p = tc_fma(p, r, 0x1.fffffcp-2f);
  return tc_fma(p, r * r, r);
}

TC_FN double tc_expm1_kernel(double r, double lost) {
  double p = tc_fma(0x1.af4f1ea8cf62dp-26, r, 0x1.289269ef56307p-22);
  p = tc_fma(p, r, 0x1.71de019c95c76p-19);
  p = tc_fma(p, r, 0x1.a019b84c6167ep-16);
  p = tc_fma(p, r, 0x1.a01a01ac171fp-13);
  p = tc_fma(p, r, 0x1.6c16c178bda2cp-10);
  p = tc_fma(p, r, 0x1.1111111110085p-7);
  p = tc_fma(p, r, 0x1.5555555553ce3p-5);
  p = tc_fma(p, r, 0x1.5555555555557p-3);
  p = tc_fma(p, r, 0.5);
  return tc_fma(p, r * r, r + lost);
}

// exp(x) = 2^n exp(r), r = x - n ln 2. The low bits of `shifted` hold n and twice
// the exponent's bias; 2^n is applied as two exact factors, so that a denormal
// result is rounded once: half of the exponent's bits, and the rest.
TC_FN float tc_exp(float x) {
  // One limit after the other, NaN through both: each is a single instruction everywhere.
  const float above = x < -104.0f ? -104.0f : x, clamped = above > 89.0f ? 89.0f : above;
  const float shifted = tc_fma(clamped, 0x1.715476p+0f, 0x1.8001fcp+23f);
  const float n = shifted - 0x1.8001fcp+23f;
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, clamped));
  const unsigned both = tc_bits(shifted), half = both << 22 & 0xff800000u;
  const float first = tc_from_bits(half), second = tc_from_bits((both << 23) - half);
  return tc_fma(tc_expm1_kernel(r), first, first) * second;
}

// The same bits for x < 43, where one factor is enough: 2^n is applied as 2^(n + 63), which has room
// down to n = -150, and that is taken back by a second, constant one.
TC_FN float tc_exp_below(float x) {
  const float clamped = x < -104.0f ? -104.0f : x;
  const float shifted = tc_fma(clamped, 0x1.715476p+0f, 0x1.80017cp+23f);
  const float n = shifted - 0x1.80017cp+23f;
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, clamped));
  const float factor = tc_from_bits(tc_bits(shifted) << 23);
  return tc_fma(tc_expm1_kernel(r), factor, factor) * 0x1p-63f;
}

TC_FN double tc_exp(double x) {
  const double clamped = x > 710.0 ? 710.0 : x < -746.0 ? -746.0 : x;
  const double shifted = tc_fma(clamped, 0x1.71547652b82fep+0, 0x1.80000000007fep+52);
  const double n = shifted - 0x1.80000000007fep+52;
  const double r = tc_fma(-n, 0x1.fdf473de6af28p-22, tc_fma(-n, 0x1.62e42p-1, clamped));
  const unsigned long long both = tc_bits(shifted), half = both >> 1;
  const double first = tc_from_bits(half << 52), second = tc_from_bits((both - half) << 52);
  return tc_fma(tc_expm1_kernel(r, 0.0), first, first) * second;
}

// 2^n 2^(x - n), as tc_exp.
TC_FN float tc_exp2(float x) {
  const float above = x < -151.0f ? -151.0f : x, clamped = above > 129.0f ? 129.0f : above;
  const float shifted = clamped + 0x1.8001fcp+23f;
  const float r = (clamped - (shifted - 0x1.8001fcp+23f)) * 0x1.62e43p-1f;
  const unsigned both = tc_bits(shifted), half = both << 22 & 0xff800000u;
  const float first = tc_from_bits(half), second = tc_from_bits((both << 23) - half);
  return tc_fma(tc_expm1_kernel(r), first, first) * second;
}

TC_FN double tc_exp2(double x) {
  const double clamped = x > 1025.0 ? 1025.0 : x < -1077.0 ? -1077.0 : x;
  const double shifted = clamped + 0x1.80000000007fep+52;
  const double r = (clamped - (shifted - 0x1.80000000007fep+52)) * 0x1.62e42fefa39efp-1;
  const unsigned long long both = tc_bits(shifted), half = both >> 1;
  const double first = tc_from_bits(half << 52), second = tc_from_bits((both - half) << 52);
  return tc_fma(tc_expm1_kernel(r, 0.0), first, first) * second;
}

// 2^n (exp(r) - 1) + (2^n - 1), halved because 2^1024 is no number; the sum is exact where
// n is 0.
TC_FN float tc_expm1(float x) {
  const float above = x < -20.0f ? -20.0f : x, clamped = above > 89.0f ? 89.0f : above;
  const float shifted = tc_fma(clamped, 0x1.715476p+0f, 0x1.8000fcp+23f);
  const float n = shifted - 0x1.8000fcp+23f, half = tc_from_bits(tc_bits(shifted) << 23);
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, clamped));
  const float result = 2.0f * tc_fma(tc_expm1_kernel(r), half, half - 0.5f);
  return x == 0.0f ? x : result;
}

TC_FN double tc_expm1(double x) {
  const double clamped = x > 710.0 ? 710.0 : x < -45.0 ? -45.0 : x;
  const double shifted = tc_fma(clamped, 0x1.71547652b82fep+0, 0x1.80000000003fep+52);
  const double n = shifted - 0x1.80000000003fep+52, half = tc_from_bits(tc_bits(shifted) << 52);
  const double high = tc_fma(-n, 0x1.62e42p-1, clamped);
  const double r = tc_fma(-n, 0x1.fdf473de6af28p-22, high);
  const double lost = tc_fma(-n, 0x1.fdf473de6af28p-22, high - r);
  const double result = 2.0 * tc_fma(tc_expm1_kernel(r, lost), half, half - 0.5);
  return x == 0.0 ? x : result;
}

// The bits, or none. Choices made of this cannot become branches: of log(max(x, 0)), written
// with ?:, g++ follows x = 0 through to the end of the loop's body and does not vectorise it.
TC_FN unsigned tc_keep(bool keep, unsigned bits) { return bits & (0u - (unsigned)keep); }

TC_FN unsigned long long tc_keep(bool keep, unsigned long long bits) {
  return bits & (0ull - (unsigned long long)keep);
}

// -e 2^23 as a float's bits take it, log(2^e m) = e ln 2 + log(m), m in [0.707, 1.414).
TC_FN unsigned tc_less_exponent(unsigned bits) { return (0x3fb504f2u - bits) & 0xff800000u; }

// (g / 4 - log(1 + g / 4)) / g^2. Four times the argument, because tc_log1p scales it by 2^(2 - e),
// where 2^-e may be a denormal.
TC_FN float tc_log_kernel(float g) {
  float q = tc_fma(-0x1.154326p-26f, g, 0x1.d96428p-24f);
  q = tc_fma(q, g, -0x1.e3d388p-22f);
  q = tc_fma(q, g, 0x1.fcc188p-20f);
  q = tc_fma(q, g, -0x1.237a4ep-17f);
  q = tc_fma(q, g, 0x1.5559e6p-15f);
  q = tc_fma(q, g, -0x1.99a13p-13f);
  q = tc_fma(q, g, 0x1.000008p-10f);
  q = tc_fma(q, g, -0x1.55554ep-8f);
  return tc_fma(q, g, 0x1p-5f);
}

// log(1 + g / 4) - less 2^-23 ln 2; of g = -0 and less = 0 it is -0.
TC_FN float tc_log_sum(float g, float less) {
  const float rest = tc_fma(tc_log_kernel(g), g * g, less * -0x1.bd0106p-36f);
  return tc_fma(less, -0x1.63p-24f, tc_fma(g, 0.25f, -rest));
}

// `result`, a logarithm of x, where x is positive and finite; of 0 -inf, of less NaN, else x.
TC_FN float tc_log_special(float x, float result) {
#ifdef __CUDACC__
  float rough;  // right for all of these
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(rough) : "f"(x));
  return tc_abs(rough) < 200.0f ? result : rough;
#else
  const unsigned mask = tc_keep(x == 0.0f, 0xff800000u) | tc_keep(x < 0.0f, 0x7fc00000u);
  const bool plain = (x > 0.0f) & (x <= 0x1.fffffep+127f);
  return tc_from_bits(tc_keep(plain, tc_bits(result)) | tc_keep(!plain, tc_bits(x) | mask));
#endif
}

// A positive x as 1 + g / 4 in [0.707, 1.414) times 2^(-less 2^-23); a denormal is scaled first.
struct tc_log_parts {
  float scaled, g, less;
};

TC_FN tc_log_parts tc_split(float x) {
  const bool tiny = x < 0x1p-126f;
  const float scaled = tiny ? x * 0x1p+24f : x;
  const unsigned bits = tc_bits(scaled), less = tc_less_exponent(bits);
  const float g = tc_fma(tc_from_bits(bits + less), 4.0f, -4.0f);
  return tc_log_parts{scaled, g, (float)(int)less + (tiny ? 0x1.8p+27f : 0.0f)};
}

TC_FN float tc_log(float x) {
  const tc_log_parts parts = tc_split(x);
  return tc_log_special(parts.scaled, tc_log_sum(parts.g, parts.less));
}

// 1 / ln 2 in two parts times log(1 + g / 4). Of a power of two it is exact.
TC_FN float tc_log2(float x) {
  const tc_log_parts parts = tc_split(x);
  const float g = parts.g, rest = tc_log_kernel(g) * (g * g);
  const float part =
      tc_fma(g, 0x1.715476p-2f, tc_fma(rest, -0x1.715476p+0f, g * 0x1.4ae0cp-28f));
  return tc_log_special(parts.scaled, tc_fma(parts.less, -0x1p-23f, part));
}

// With log10(2) in two parts too, of which the first times e is exact: so it is of a power of ten.
TC_FN float tc_log10(float x) {
  const tc_log_parts parts = tc_split(x);
  const float g = parts.g, rest = tc_log_kernel(g) * (g * g);
  const float low = tc_fma(g, -0x1.5b235ep-29f, parts.less * -0x1.3509f8p-41f);
  const float part = tc_fma(g, 0x1.bcb7b2p-4f, tc_fma(rest, -0x1.bcb7b2p-2f, low));
  return tc_log_special(parts.scaled, tc_fma(parts.less, -0x1.344p-25f, part));
}

// log((1 + s) / (1 - s)) = 2 s + s^3 R(s^2), s = f / (2 + f).
TC_FN double tc_log(double x) {
  const bool tiny = x < 0x1p-1022;
  const double scaled = x * tc_from_bits(0x3ff0000000000000ull + tc_keep(tiny, 54ull << 52));
  const unsigned long long bits = tc_bits(scaled), shifted = bits - 0x3fe6a09e667f3bcdull;
  const double e = (double)(int)((long long)shifted >> 52) -
                   tc_from_bits(tc_keep(tiny, 0x404b000000000000ull));
  const double f = tc_from_bits((shifted & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  double p = tc_fma(z, 0x1.2f112df3e5244p-3, 0x1.39a09d078c69fp-3);
  p = tc_fma(p, z, 0x1.7466496cb03dep-3);
  p = tc_fma(p, z, 0x1.c71c51d8e78afp-3);
  p = tc_fma(p, z, 0x1.2492494229359p-2);
  p = tc_fma(p, z, 0x1.999999997fa04p-2);
  p = tc_fma(p, z, 0x1.5555555555593p-1);
  const double half = 0.5 * f * f;
  const double correction = tc_fma(s, tc_fma(p, z, half), e * 0x1.fdf473de6af28p-22);
  const double result = tc_fma(e, 0x1.62e42p-1, f - (half - correction));
  const unsigned long long mask =
      tc_keep(x == 0.0, 0xfff0000000000000ull) | tc_keep(x < 0.0, 0x7ff8000000000000ull);
  const bool plain = (x > 0.0) & (x <= 0x1.fffffffffffffp+1023);
  return tc_from_bits(tc_keep(plain, tc_bits(result)) | tc_keep(!plain, tc_bits(x) | mask));
}

// x = 2^exponent mantissa, the mantissa in [0.707, 1.414); of 0, a negative number, an infinity or
// NaN the exponent is 0 and the mantissa x itself.
struct tc_parts {
  double exponent, mantissa;
};

TC_FN tc_parts tc_split(double x) {
  const bool tiny = x < 0x1p-1022, plain = (x > 0.0) & (x <= 0x1.fffffffffffffp+1023);
  const double scaled = x * tc_from_bits(0x3ff0000000000000ull + tc_keep(tiny, 54ull << 52));
  const unsigned long long shifted = tc_bits(scaled) - 0x3fe6a09e667f3bcdull;
  const double e = (double)(int)((long long)shifted >> 52) -
                   tc_from_bits(tc_keep(tiny, 0x404b000000000000ull));
  const unsigned long long m = (shifted & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull;
  return tc_parts{tc_from_bits(tc_keep(plain, tc_bits(e))),
                  tc_from_bits(tc_keep(plain, m) | tc_keep(!plain, tc_bits(x)))};
}

// Of a power of two it is exact.
TC_FN double tc_log2(double x) {
  const tc_parts parts = tc_split(x);
  return tc_fma(tc_log(parts.mantissa), 0x1.71547652b82fep+0, parts.exponent);
}

// e log10(2), its first part exact, + log(m) / log(10).
TC_FN double tc_log10(double x) {
  const tc_parts parts = tc_split(x);
  const double rest = tc_fma(tc_log(parts.mantissa), 0x1.bcb7b1526e50ep-2,
                             parts.exponent * 0x1.3fde623e2566bp-43);
  return tc_fma(parts.exponent, 0x1.34413509f70p-2, rest);
}

// 1 / d as IEEE rounds it, where neither is a denormal: what CUDA's 1.0f / d does there, less the
// test that costs.
TC_FN float tc_inverse(float d) {
#ifdef __CUDACC__
  float seed;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(seed) : "f"(d));
  return tc_fma(tc_fma(-d, seed, 1.0f), seed, seed);
#else
  return 1.0f / d;
#endif
}

// A divisor of many values, and the largest that tc_quotient is right for, -1 if there is none.
struct tc_divisor {
  float value, inverse, most;
};

TC_FN tc_divisor tc_divide_by(float value) {
  const bool usual = (value >= 0x1p-60f) & (value <= 0x1p+60f);
  return tc_divisor{value, 1.0f / value, usual ? 0x1p+60f : -1.0f};
}

// a / value as IEEE rounds it, where tc_divides: with the nearest reciprocal one correction is enough
// (Brisebarre, Muller and Raina, Accelerating correctly rounded floating-point division when the
// divisor is known in advance, 2004, after Markstein). The signs are such that -0 stays -0; it is
// the inverse that is negated, because g++ takes -fma(x, y, z) for fma(-x, y, -z), whose zero has
// the other sign.
TC_FN float tc_quotient(float a, tc_divisor by) {
  const float rough = a * by.inverse;
  return tc_fma(tc_fma(rough, by.value, -a), -by.inverse, rough);
}

TC_FN bool tc_divides(float a, tc_divisor by) {
  const unsigned twice =
      tc_bits(a) * 2u - 1u;  // at least 2^-60's, or a zero's, which is the largest
  return (twice >= 0x42ffffffu) & (tc_abs(a) <= by.most);
}

// A NaN stays one, and +0 stays +0 where `low` is -0: one instruction each.
TC_FN float tc_at_least(float x, float low) {
#ifdef __CUDACC__
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(low));
  return result;
#else
  return low > x ? low : x;
#endif
}

TC_FN float tc_at_most(float x, float high) {
#ifdef __CUDACC__
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(high));
  return result;
#else
  return high < x ? high : x;
#endif
}

// log(1 + x) = e ln 2 + log(1 + f), 1 + f = 2^-e (1 + x), which is rounded once. A zero keeps its sign,
// which compilers do not all carry through the sums.
TC_FN float tc_log1p(float x) {
  const float sum = 1.0f + x;
  const unsigned less = tc_less_exponent(tc_bits(sum));
  const float scale = tc_from_bits(0x40800000u + less), g = tc_fma(x, scale, -(4.0f - scale));
  return x == 0.0f ? x : tc_log_special(sum, tc_log_sum(g, (float)(int)less));
}

// log(1 + x): what the sum u rounds away, over u, is added to log(u). Beyond 2^60 that is nothing,
// and a tiny x is its own logarithm.
TC_FN double tc_log1p(double x) {
  const double u = 1.0 + x, back = u - 1.0, lost = (1.0 - (u - back)) + (x - back);
  const bool matters = !((u <= 0.0) | (u > 0x1p+60)), small = tc_abs(x) < 0x1p-53;
  const double result = tc_log(u) + tc_from_bits(tc_keep(matters, tc_bits(lost / u)));
  return tc_from_bits(tc_keep(small, tc_bits(x)) | tc_keep(!small, tc_bits(result)));
}

// log(exp(a) + exp(b)) = m + log(1 + e), e = exp(d), m the greater, d <= 0 the lesser less the
// greater; log(1 + e) = q + q^3 P(q^2), q = 2 e / (2 + e). Each of d, e, 2 + e, q and the sum is
// carried with what its rounding lost; exp is tc_exp_below's. Where d is infinite or NaN the result
// is m: so -inf is neutral to the bit, the other operand comes back, a zero with its sign.
TC_FN float tc_logaddexp(float a, float b) {
  const float m = tc_maximum(a, b), least = tc_minimum(a, b), d = least - m, back = d - least;
  const float d_lost = (least - (d - back)) - (m + back), clamped = d < -104.0f ? -104.0f : d;
  const float shifted = tc_fma(clamped, 0x1.715476p+0f, 0x1.80017cp+23f);
  const float n = shifted - 0x1.80017cp+23f, high = tc_fma(n, -0x1.63p-1f, clamped);
  const float low = tc_from_bits(tc_keep(d >= -104.0f, tc_bits(d_lost)));
  const float part = tc_expm1_kernel(tc_fma(n, 0x1.bd0106p-13f, high + low));
  const float power = tc_from_bits(tc_bits(shifted) << 23), scaled = tc_fma(part, power, power);
  const float e = scaled * 0x1p-63f, e_lost = tc_fma(part, power, power - scaled) * 0x1p-63f;
  const float t = 2.0f + e, t_lost = (e - (t - 2.0f)) + e_lost, inverse = tc_inverse(t);
  const float q = 2.0f * e * inverse, w = q * q;
  const float rest = tc_fma(-q, t_lost, tc_fma(-q, t, 2.0f * e)) + 2.0f * e_lost;
  float p = tc_fma(0x1.f1aeecp-14f, w, 0x1.b6d6a2p-12f);
  p = tc_fma(p, w, 0x1.250972p-9f);
  p = tc_fma(p, w, 0x1.9996a8p-7f);
  p = tc_fma(p, w, 0x1.555558p-4f);
  const float sum = m + q, gain = sum - m, lost = (m - (sum - gain)) + (q - gain);
  const float result = sum + (tc_fma(p, w * q, rest * inverse) + lost);
  return d >= -0x1.fffffep+127f ? result : m;
}

TC_FN double tc_logaddexp(double a, double b) {
  const double m = tc_maximum(a, b), least = tc_minimum(a, b), d = least - m, back = d - least;
  const double lost = (least - (d - back)) - (m + back), e = tc_exp(d);
  const double result =
      m + tc_log1p(tc_fma(e, tc_from_bits(tc_keep(e > 0.0, tc_bits(lost))), e));
  return d >= -0x1.fffffffffffffp+1023 ? result : m;
}

// No root is a denormal, so 1 / root is tc_inverse; of roots 0 and infinity the seed is right.
TC_FN float tc_rsqrt(float x) {
  const float root = tc_sqrt(x);
#ifdef __CUDACC__
  float seed;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(seed) : "f"(root));
  const float inverse = tc_inverse(root);
  return tc_is_nan(inverse) ? seed : inverse;
#else
  return 1.0f / root;
#endif
}

TC_FN double tc_rsqrt(double x) { return 1.0 / tc_sqrt(x); }

TC_FN float tc_reciprocal(float x) { return 1.0f / x; }

TC_FN double tc_reciprocal(double x) { return 1.0 / x; }

// Sign and special cases of C99's pow around a magnitude |x|^y.
TC_FN double tc_pow_sign(double x, double y, double magnitude) {
  const bool whole = tc_trunc(y) == y, odd = whole & (tc_trunc(0.5 * y) != 0.5 * y);
  const bool root = (x < 0.0) & !whole & (x >= -0x1.fffffffffffffp+1023);
  const bool one = (y == 0.0) | ((y - y != 0.0) & ((x == 1.0) | ((x == -1.0) & (y == y))));
  const unsigned long long nan = root ? 0x7ff8000000000000ull : 0;
  return one ? 1.0 : tc_from_bits(tc_bits(odd ? tc_copysign(magnitude, x) : magnitude) | nan);
}

TC_FN float tc_pow(float x, float y) {
  const double magnitude = tc_exp((double)y * tc_log(tc_abs((double)x)));
  return (float)tc_pow_sign(x, y, magnitude);
}

// The logarithm needs ten more bits than a double has: 2 s + 2/3 s^3 + ... with the first two
// terms in two parts each.
TC_FN double tc_pow(double x, double y) {
  const double a = tc_abs(x);
  const bool tiny = a < 0x1p-1022;
  const double scaled = a * tc_from_bits(0x3ff0000000000000ull + tc_keep(tiny, 54ull << 52));
  const unsigned long long shifted = tc_bits(scaled) - 0x3fe6a09e667f3bcdull;
  const double e = (double)(int)((long long)shifted >> 52) -
                   tc_from_bits(tc_keep(tiny, 0x404b000000000000ull));
  const double f = tc_from_bits((shifted & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull) - 1.0;
  const double d = 2.0 + f, d_rest = f - (d - 2.0);
  const double s = f / d, s_rest = (tc_fma(-s, d, f) - s * d_rest) / d;
  const double z = s * s, z_rest = tc_fma(s, s, -z) + 2.0 * s * s_rest;
  double p = tc_fma(z, 0x1.e0341a0579ff4p-4, 0x1.df7c338f65d23p-4);
  p = tc_fma(p, z, 0x1.1118caea0880fp-3);
  p = tc_fma(p, z, 0x1.3b1395c295dddp-3);
  p = tc_fma(p, z, 0x1.745d177abee7dp-3);
  p = tc_fma(p, z, 0x1.c71c71c6ea6dbp-3);
  p = tc_fma(p, z, 0x1.2492492492522p-2);
  p = tc_fma(p, z, 0x1.999999999999ap-2);
  p = p * z;  // 2/5 z + 2/7 z^2 + ...
  const double q = 0x1.5555555555555p-1 + p,
               q_rest = (0x1.5555555555555p-1 - q) + p + 0x1.5555555555555p-55;
  const double c = z * q, c_rest = tc_fma(z, q, -c) + z * q_rest + z_rest * q;  // z (2/3 + p)
  const double m = 2.0 * s, cubic = s * c,
               cubic_rest = tc_fma(s, c, -cubic) + s * c_rest + s_rest * c;
  const double e_high = e * 0x1.62e42p-1, e_low = e * 0x1.fdf473de6af28p-22;
  const double t0 = e_high + m, t0_rest = (e_high - t0) + m;  // |e_high| > |m| or e_high = 0
  const double t1 = t0 + cubic, t1_rest = (t0 - t1) + cubic;
  const double t2 = t1 + e_low, t2_rest = (t1 - t2) + e_low;
  const double low =
      t0_rest + t1_rest + t2_rest + 2.0 * s_rest + cubic_rest + e * -0x1.c4c67fc0d0951p-76;
  const bool plain = (a > 0.0) & (a <= 0x1.fffffffffffffp+1023);
  const unsigned long long special = tc_bits(a) | tc_keep(a == 0.0, 0xfff0000000000000ull);
  const double high =
      tc_from_bits(tc_keep(plain, tc_bits(t2 + low)) | tc_keep(!plain, special));
  const double rest = (t2 - high) + low;
  const double product = y * high, product_rest = tc_fma(y, high, -product) + y * rest;
  const double power = tc_exp(product);
  const bool inside = plain & (power > 0.0) & (power <= 0x1.fffffffffffffp+1023);
  return tc_pow_sign(x, y, inside ? tc_fma(power, product_rest, power) : power);
}
