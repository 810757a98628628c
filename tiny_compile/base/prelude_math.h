// The shared functions of a real number, in the same form as prelude.h: f32 within 2 ulp, f64
// within
// 4. Branch-free but for huge angles, so that plain loops over them become vector code.
// Polynomials are Chebyshev interpolants of the function named, computed with 60 digits
// (tests/base/ulp.cpp measures what they reach).

// 2^n * x for n in [-300, 300], in two exact steps so that denormal results are rounded once.
TC_FN float tc_scale(float x, int n) {
  const int half = n >> 1;
  return x * tc_from_bits((unsigned)(half + 127) << 23) *
         tc_from_bits((unsigned)(n - half + 127) << 23);
}

TC_FN double tc_scale(double x, int n) {
  const int half = n >> 1;
  return x * tc_from_bits((unsigned long long)(half + 1023) << 52) *
         tc_from_bits((unsigned long long)(n - half + 1023) << 52);
}

// factor * exp(x), rounded to a denormal once. exp(x) = 2^n exp(r), r = x - n ln 2 in [-0.347,
// 0.347].
TC_FN float tc_exp_times(float x, float factor) {
  const float clamped = x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x;
  const float n = tc_round(clamped * 0x1.715476p+0f);
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, clamped));
  float p = tc_fma(0x1.a12652p-13f, r, 0x1.6d44b2p-10f);
  p = tc_fma(p, r, 0x1.1110ep-7f);
  p = tc_fma(p, r, 0x1.5554e8p-5f);
  p = tc_fma(p, r, 0x1.555556p-3f);
  p = tc_fma(p, r, 0.5f);
  p = tc_fma(p, r * r, r) + 1.0f;
  return x != x ? x : tc_scale(p * factor, (int)(n == n ? n : 0.0f));
}

TC_FN double tc_exp_times(double x, double factor) {
  const double clamped = x > 710.0 ? 710.0 : x < -746.0 ? -746.0 : x;
  const double n = tc_round(clamped * 0x1.71547652b82fep+0);
  const double r = tc_fma(-n, 0x1.fdf473de6af28p-22, tc_fma(-n, 0x1.62e42p-1, clamped));
  double p = tc_fma(0x1.61c0771ef2dc6p-33, r, 0x1.1f7fe7ae52b1p-29);
  p = tc_fma(p, r, 0x1.ae642c13c8d5fp-26);
  p = tc_fma(p, r, 0x1.27e4d3b13855fp-22);
  p = tc_fma(p, r, 0x1.71de3a5abc8c6p-19);
  p = tc_fma(p, r, 0x1.a01a01aa109bbp-16);
  p = tc_fma(p, r, 0x1.a01a01a01967ap-13);
  p = tc_fma(p, r, 0x1.6c16c16c15a0ap-10);
  p = tc_fma(p, r, 0x1.1111111111111p-7);
  p = tc_fma(p, r, 0x1.5555555555557p-5);
  p = tc_fma(p, r, 0x1.5555555555555p-3);
  p = tc_fma(p, r, 0.5);
  p = tc_fma(p, r * r, r) + 1.0;
  return x != x ? x : tc_scale(p * factor, (int)(n == n ? n : 0.0));
}

TC_FN float tc_exp(float x) { return tc_exp_times(x, 1.0f); }

TC_FN double tc_exp(double x) { return tc_exp_times(x, 1.0); }

// 2^n (exp(r) - 1) + (2^n - 1); the sum is exact where n is 0.
TC_FN float tc_expm1(float x) {
  const float clamped = x > 89.0f ? 89.0f : x < -20.0f ? -20.0f : x;
  const float n = tc_round(clamped * 0x1.715476p+0f);
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, clamped));
  float p = tc_fma(0x1.a12652p-13f, r, 0x1.6d44b2p-10f);
  p = tc_fma(p, r, 0x1.1110ep-7f);
  p = tc_fma(p, r, 0x1.5554e8p-5f);
  p = tc_fma(p, r, 0x1.555556p-3f);
  p = tc_fma(p, r, 0.5f);
  p = tc_fma(p, r * r, r);
  const int k = (int)(n == n ? n : 0.0f) - 1;
  const float half = tc_from_bits((unsigned)(k + 127) << 23);
  const float result = 2.0f * tc_fma(p, half, half - 0.5f);
  return x != x || x == 0.0f ? x : result;
}

TC_FN double tc_expm1(double x) {
  const double clamped = x > 710.0 ? 710.0 : x < -45.0 ? -45.0 : x;
  const double n = tc_round(clamped * 0x1.71547652b82fep+0);
  const double high = tc_fma(-n, 0x1.62e42p-1, clamped);
  const double r = tc_fma(-n, 0x1.fdf473de6af28p-22, high);
  const double lost = tc_fma(-n, 0x1.fdf473de6af28p-22, high - r);
  double p = tc_fma(0x1.61c0771ef2dc6p-33, r, 0x1.1f7fe7ae52b1p-29);
  p = tc_fma(p, r, 0x1.ae642c13c8d5fp-26);
  p = tc_fma(p, r, 0x1.27e4d3b13855fp-22);
  p = tc_fma(p, r, 0x1.71de3a5abc8c6p-19);
  p = tc_fma(p, r, 0x1.a01a01aa109bbp-16);
  p = tc_fma(p, r, 0x1.a01a01a01967ap-13);
  p = tc_fma(p, r, 0x1.6c16c16c15a0ap-10);
  p = tc_fma(p, r, 0x1.1111111111111p-7);
  p = tc_fma(p, r, 0x1.5555555555557p-5);
  p = tc_fma(p, r, 0x1.5555555555555p-3);
  p = tc_fma(p, r, 0.5);
  p = tc_fma(p, r * r, r + lost);
  const int k = (int)(n == n ? n : 0.0) - 1;
  const double half = tc_from_bits((unsigned long long)(k + 1023) << 52);
  const double result = 2.0 * tc_fma(p, half, half - 0.5);
  return x != x || x == 0.0 ? x : result;
}

// log(2^e m) = e ln 2 + log(m), m in [0.707, 1.414), f = m - 1.
TC_FN float tc_log(float x) {
  const bool tiny = x < 0x1p-126f;
  const float scaled = tiny ? x * 0x1p+24f : x;
  const unsigned bits = tc_bits(scaled), shifted = bits - 0x3f3504f3u;
  const float e = (float)((int)shifted >> 23) - (tiny ? 24.0f : 0.0f);
  const float f = tc_from_bits((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  float p = tc_fma(0x1.154326p-4f, f, -0x1.d96428p-4f);
  p = tc_fma(p, f, 0x1.e3d388p-4f);
  p = tc_fma(p, f, -0x1.fcc188p-4f);
  p = tc_fma(p, f, 0x1.237a4ep-3f);
  p = tc_fma(p, f, -0x1.5559e6p-3f);
  p = tc_fma(p, f, 0x1.99a13p-3f);
  p = tc_fma(p, f, -0x1.000008p-2f);
  p = tc_fma(p, f, 0x1.55554ep-2f);
  p = tc_fma(p, f, -0.5f);
  p = tc_fma(p, f * f, e * -0x1.bd0106p-13f);
  const float result = tc_fma(e, 0x1.63p-1f, p + f);
  const float special = x == 0.0f  ? -tc_from_bits(0x7f800000u)
                        : x < 0.0f ? tc_from_bits(0x7fc00000u)
                                   : x;
  return x > 0.0f && x <= 0x1.fffffep+127f ? result : special;
}

// log((1 + s) / (1 - s)) = 2 s + s^3 R(s^2), s = f / (2 + f).
TC_FN double tc_log(double x) {
  const bool tiny = x < 0x1p-1022;
  const double scaled = tiny ? x * 0x1p+54 : x;
  const unsigned long long bits = tc_bits(scaled), shifted = bits - 0x3fe6a09e667f3bcdull;
  const double e = (double)(int)((long long)shifted >> 52) - (tiny ? 54.0 : 0.0);
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
  const double special = x == 0.0  ? -tc_from_bits(0x7ff0000000000000ull)
                         : x < 0.0 ? tc_from_bits(0x7ff8000000000000ull)
                                   : x;
  return x > 0.0 && x <= 0x1.fffffffffffffp+1023 ? result : special;
}

// log(1 + x): the part of x that 1 + x rounds away is added back to first order.
TC_FN float tc_log1p(float x) {
  const float u = 1.0f + x;
  const float lost = x >= 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  const float result = tc_log(u) + lost / u;
  const bool small = tc_abs(x) < 0x1p-24f;
  return small || x != x || x > 0x1.fffffep+127f ? x : u <= 0.0f ? tc_log(u) : result;
}

TC_FN double tc_log1p(double x) {
  const double u = 1.0 + x;
  const double lost = x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
  const double result = tc_log(u) + lost / u;
  const bool small = tc_abs(x) < 0x1p-53;
  return small || x != x || x > 0x1.fffffffffffffp+1023 ? x : u <= 0.0 ? tc_log(u) : result;
}

// An angle less its nearest multiple of pi/2: value + rest, and the multiple modulo 4.
struct tc_angle {
  double value, rest;
  int quadrant;
};

// Payne and Hanek (1983): of 2/pi only the bits that matter for this exponent are multiplied.
TC_FN tc_angle tc_reduce_huge(double x) {
  const unsigned table[40] = {
      0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
      0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
      0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu,
      0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u,
      0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u,
      0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du};
  const unsigned long long bits = tc_bits(x);
  const int exponent = (int)((bits >> 52) & 0x7ff) - 1075;  // |x| = mantissa * 2^exponent
  const unsigned long long mantissa = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  // Words of 2/pi whose product with the mantissa is a multiple of 4 are left out.
  const int first = exponent > 60 ? (exponent - 2) / 32 - 1 : 0;
  unsigned product[8] = {0, 0, 0, 0, 0, 0, 0, 0};  // most significant first
  for (int half = 0; half < 2; half++) {
    const unsigned long long factor =
        half == 0 ? (unsigned)mantissa : (unsigned)(mantissa >> 32);
    unsigned long long carry = 0;
    for (int k = 5; k >= 0; k--) {
      carry += factor * table[first + k] + product[k + 2 - half];
      product[k + 2 - half] = (unsigned)carry;
      carry >>= 32;
    }
    product[1 - half] += (unsigned)carry;
  }
  // The binary point stands after bit 64 - 32*first ... of the 256: shift it to the top.
  const int point = 64 + exponent - 32 * first;  // bits of product[0..] above the binary point
  const int skip = point - 2;                    // the two below them are the quadrant
  unsigned long long words[3];
  for (int k = 0; k < 3; k++) {
    const int at = skip + 64 * k, word = at >> 5, shift = at & 31;
    const unsigned long long high = word < 8 ? product[word] : 0,
                             mid = word + 1 < 8 ? product[word + 1] : 0,
                             low = word + 2 < 8 ? product[word + 2] : 0;
    const unsigned long long wide = (high << 32) | mid;
    words[k] = shift ? (wide << shift) | (low >> (32 - shift)) : wide;
  }
  int quadrant = (int)(words[0] >> 62);
  unsigned long long f0 = (words[0] << 2) | (words[1] >> 62),
                     f1 = (words[1] << 2) | (words[2] >> 62);
  const bool past_half = (f0 >> 63) != 0;
  if (past_half) {
    quadrant++;
    f1 = ~f1 + 1;
    f0 = ~f0 + (f1 == 0 ? 1 : 0);
  }
  int shift = 0;
  while (shift < 64 && !(f0 >> 63)) {
    f0 = (f0 << 1) | (f1 >> 63);
    f1 <<= 1;
    shift++;
  }
  const double scale = tc_from_bits((unsigned long long)(1023 - 64 - shift) << 52);
  const double high = (double)(f0 >> 11 << 11) * scale;
  const double low = ((double)(f0 & 0x7ff) + (double)(f1 >> 11) * 0x1p-53) * scale;
  double value = high * 0x1.921fb54442d18p+0;
  double rest = tc_fma(high, 0x1.921fb54442d18p+0, -value) +
                tc_fma(high, 0x1.1a62633145c07p-54, low * 0x1.921fb54442d18p+0);
  const bool negative = ((bits >> 63) != 0) != past_half;
  if (bits >> 63) quadrant = -quadrant;
  return tc_angle{negative ? -value : value, negative ? -rest : rest, quadrant & 3};
}

// x - n pi/2 with pi/2 in three parts (Cody and Waite).
TC_FN tc_angle tc_reduce(double x) {
  if (tc_abs(x) > 0x1p+20) return tc_reduce_huge(x);
  const double n = tc_round(x * 0x1.45f306dc9c883p-1);
  const double p = n * 0x1.921fb54442d18p+0, p_rest = tc_fma(n, 0x1.921fb54442d18p+0, -p);
  const double d = x - p, t = d - p_rest, t_part = t - d,
               t_rest = (d - (t - t_part)) - (p_rest + t_part);
  const double m = n * 0x1.1a62633145c07p-54, m_rest = tc_fma(n, 0x1.1a62633145c07p-54, -m);
  const double r = t - m;
  const double rest = ((t - r) - m) + t_rest - m_rest + n * 0x1.f1976b7ed8fbcp-110;
  return tc_angle{r, rest, (int)n & 3};
}

// Taylor series on [-pi/4, pi/4].
TC_FN double tc_sin_kernel(double x, double rest) {
  const double z = x * x;
  double p = tc_fma(z, 0x1.952c77030ad4ap-49, -0x1.ae7f3e733b81fp-41);
  p = tc_fma(p, z, 0x1.6124613a86d09p-33);
  p = tc_fma(p, z, -0x1.ae64567f544e4p-26);
  p = tc_fma(p, z, 0x1.71de3a556c734p-19);
  p = tc_fma(p, z, -0x1.a01a01a01a01ap-13);
  p = tc_fma(p, z, 0x1.1111111111111p-7);
  p = tc_fma(p, z, -0x1.5555555555555p-3);
  return x + tc_fma(p * z, x, rest * (1.0 - 0.5 * z));
}

TC_FN double tc_cos_kernel(double x, double rest) {
  const double z = x * x;
  double p = tc_fma(z, -0x1.6827863b97d97p-53, 0x1.ae7f3e733b81fp-45);
  p = tc_fma(p, z, -0x1.93974a8c07c9dp-37);
  p = tc_fma(p, z, 0x1.1eed8eff8d898p-29);
  p = tc_fma(p, z, -0x1.27e4fb7789f5cp-22);
  p = tc_fma(p, z, 0x1.a01a01a01a01ap-16);
  p = tc_fma(p, z, -0x1.6c16c16c16c17p-10);
  p = tc_fma(p, z, 0x1.5555555555555p-5);
  const double half = 0.5 * z, w = 1.0 - half;
  return w + (((1.0 - w) - half) + tc_fma(p * z, z, -x * rest));
}

TC_FN double tc_sin(double x) {
  const tc_angle angle = tc_reduce(x);
  const double value = (angle.quadrant & 1) ? tc_cos_kernel(angle.value, angle.rest)
                                            : tc_sin_kernel(angle.value, angle.rest);
  return x - x != 0.0 ? x - x : x == 0.0 ? x : (angle.quadrant & 2) ? -value : value;
}

TC_FN double tc_cos(double x) {
  const tc_angle angle = tc_reduce(x);
  const double value = (angle.quadrant & 1) ? tc_sin_kernel(angle.value, angle.rest)
                                            : tc_cos_kernel(angle.value, angle.rest);
  const bool negative = ((angle.quadrant + 1) & 2) != 0;
  return x - x != 0.0 ? x - x : negative ? -value : value;
}

// In double: correctly rounded but for the rarest of cases.
TC_FN float tc_sin(float x) { return (float)tc_sin((double)x); }

TC_FN float tc_cos(float x) { return (float)tc_cos((double)x); }

// x P(x^2) near zero, 1 - 2 / (exp(2x) + 1) elsewhere.
TC_FN float tc_tanh(float x) {
  const float t = tc_abs(x), z = x * x;
  float p = tc_fma(-0x1.5bb93ap-8f, z, 0x1.4bdaecp-6f);
  p = tc_fma(p, z, -0x1.b72d42p-5f);
  p = tc_fma(p, z, 0x1.10fdcep-3f);
  p = tc_fma(p, z, -0x1.5554f8p-2f);
  const float small = tc_fma(p * z, x, x);
  const float large = 1.0f - 2.0f / (tc_exp(2.0f * (t > 20.0f ? 20.0f : t)) + 1.0f);
  return x != x ? x : tc_copysign(t < 0.65f ? small : large, x);
}

TC_FN double tc_tanh(double x) {
  const double t = tc_abs(x), e = tc_expm1(2.0 * (t > 20.0 ? 20.0 : t));
  const double result = t > 20.0 ? 1.0 : e / (e + 2.0);
  return x != x ? x : tc_copysign(result, x);
}

// exp(-|x|) cannot overflow; both sides of 1/2 share it.
TC_FN float tc_sigmoid(float x) {
  const float e = tc_exp(-tc_abs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

TC_FN double tc_sigmoid(double x) {
  const double e = tc_exp(-tc_abs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

// x P(x^2) near zero, 1 - exp(x Q(x)) with x Q(x) = log(erfc(x)) elsewhere.
TC_FN float tc_erf(float x) {
  const float z = x * x, t = tc_abs(x) > 3.95f ? 3.95f : tc_abs(x);
  float p = tc_fma(0x1.5e4ddp-14f, z, -0x1.aab506p-11f);
  p = tc_fma(p, z, 0x1.54d5c4p-8f);
  p = tc_fma(p, z, -0x1.b8100ep-6f);
  p = tc_fma(p, z, 0x1.ce2e1cp-4f);
  p = tc_fma(p, z, -0x1.812744p-2f);
  const float small = tc_fma(p * z, x, tc_fma(x, 0x1.06eba8p-3f, x));
  float q = tc_fma(0x1.47192ep-22f, t, -0x1.5094fp-18f);
  q = tc_fma(q, t, 0x1.1c82f8p-16f);
  q = tc_fma(q, t, 0x1.0e1a9ep-12f);
  q = tc_fma(q, t, -0x1.da3cb6p-9f);
  q = tc_fma(q, t, 0x1.882928p-6f);
  q = tc_fma(q, t, -0x1.b490e2p-4f);
  q = tc_fma(q, t, -0x1.450fccp-1f);
  q = tc_fma(q, t, -0x1.20f4p+0f);
  const float large = 1.0f - tc_exp(q * t);
  return x != x ? x : tc_copysign(tc_abs(x) < 0.86f ? small : large, x);
}

// factor times the normal distribution's tail: P(X > t), t >= 0, as exp(-t^2/2) G(v) / (t + 4),
// v linear in 1 / (t + 4). The square's rounding error is put back: exp would enlarge it by
// t^2/2.
TC_FN float tc_normal_tail(float t, float factor) {
  const float inverse = 1.0f / (t + 4.0f), square = t * t, lost = tc_fma(t, t, -square);
  const float v = tc_fma(inverse, -0x1.444444p+3f, 0x1.888888p+0f);
  float p = tc_fma(-0x1.456ad6p-18f, v, -0x1.ecb9e6p-17f);
  p = tc_fma(p, v, 0x1.412b14p-14f);
  p = tc_fma(p, v, 0x1.a2e6bap-13f);
  p = tc_fma(p, v, -0x1.5fb1fep-10f);
  p = tc_fma(p, v, -0x1.190774p-11f);
  p = tc_fma(p, v, 0x1.a0fe06p-6f);
  p = tc_fma(p, v, -0x1.e3a4e2p-4f);
  p = tc_fma(p, v, 0x1.4ce472p-2f);
  p = tc_fma(p, v, -0x1.42918ep-1f);
  p = tc_fma(p, v, 0x1.cdf82p-1f) * inverse;
  p = tc_fma(p, -0.5f * lost, p);
  return tc_exp_times(-0.5f * square, p * factor);
}

TC_FN double tc_normal_tail(double t, double factor) {
  const double inverse = 1.0 / (t + 5.0), square = t * t, lost = tc_fma(t, t, -square);
  const double v = tc_fma(inverse, -0x1.6906906906907p+3, 0x1.41a41a41a41a4p+0);
  double p = tc_fma(-0x1.748579d6c434ap-40, v, -0x1.95811bbbf35e5p-36);
  p = tc_fma(p, v, -0x1.f03cf6c0c922fp-39);
  p = tc_fma(p, v, 0x1.4da3ccae1c7dbp-32);
  p = tc_fma(p, v, 0x1.12f3f6b5b0676p-32);
  p = tc_fma(p, v, -0x1.59f4cd1b5318bp-29);
  p = tc_fma(p, v, -0x1.dc82825b9c781p-29);
  p = tc_fma(p, v, 0x1.49f2f68d9e28dp-26);
  p = tc_fma(p, v, 0x1.2ae93ce55d241p-25);
  p = tc_fma(p, v, -0x1.592d6afebc83dp-23);
  p = tc_fma(p, v, -0x1.3cdf487b0b7f8p-22);
  p = tc_fma(p, v, 0x1.a9569cf1dea3p-20);
  p = tc_fma(p, v, 0x1.f257f52badf9ep-20);
  p = tc_fma(p, v, -0x1.2acd22e7732e6p-16);
  p = tc_fma(p, v, 0x1.2c0d29887a334p-18);
  p = tc_fma(p, v, 0x1.953a45a250992p-13);
  p = tc_fma(p, v, -0x1.12e9435d6f06bp-11);
  p = tc_fma(p, v, -0x1.c45428fba69e5p-11);
  p = tc_fma(p, v, 0x1.6a971e4b00d2cp-7);
  p = tc_fma(p, v, -0x1.789c3a7427b08p-5);
  p = tc_fma(p, v, 0x1.07842bcdd8e32p-3);
  p = tc_fma(p, v, -0x1.1bdf28be218e6p-2);
  p = tc_fma(p, v, 0x1.ef9b0c175bfafp-2);
  p = tc_fma(p, v, -0x1.6707186ca2d96p-1);
  p = tc_fma(p, v, 0x1.b410aa4371b2cp-1) * inverse;
  p = tc_fma(p, -0.5 * lost, p);
  return tc_exp_times(-0.5 * square, p * factor);
}

TC_FN double tc_erf(double x) {
  const double z = x * x, t = tc_abs(x) > 6.0 ? 6.0 : tc_abs(x);
  double p = tc_fma(-0x1.29b9f1b3df556p-38, z, 0x1.7f072188e194dp-34);
  p = tc_fma(p, z, -0x1.4e607b41a6416p-30);
  p = tc_fma(p, z, 0x1.fc4356498c2d9p-27);
  p = tc_fma(p, z, -0x1.5f6d925a0bc7ap-23);
  p = tc_fma(p, z, 0x1.b9e6509b9867dp-20);
  p = tc_fma(p, z, -0x1.f4d2561aeafd4p-17);
  p = tc_fma(p, z, 0x1.f9a326c233146p-14);
  p = tc_fma(p, z, -0x1.c02db3feeb579p-11);
  p = tc_fma(p, z, 0x1.565bcd0e6502dp-8);
  p = tc_fma(p, z, -0x1.b82ce312889bap-6);
  p = tc_fma(p, z, 0x1.ce2f21a042bdep-4);
  p = tc_fma(p, z, -0x1.812746b0379e7p-2);
  const double small = tc_fma(p * z, x, tc_fma(x, 0x1.06eba8214db69p-3, x));
  const double large = 1.0 - tc_normal_tail(t * 0x1.6a09e667f3bcdp+0, 2.0);
  return x != x ? x : tc_copysign(tc_abs(x) < 1.0 ? small : large, x);
}

// x P(X < x), from the tail on the far side of zero, so that nothing cancels. Beyond -15 (f64:
// -39) it is -0; the tail's factor is cut off there as well, or its size would tell.
TC_FN float tc_gelu(float x) {
  const float t = tc_abs(x) > 15.0f ? 15.0f : tc_abs(x);
  const float part = tc_normal_tail(t, tc_copysign(t, x));
  return x > 15.0f ? x : x <= 0.0f ? part : x - part;
}

TC_FN double tc_gelu(double x) {
  const double t = tc_abs(x) > 39.0 ? 39.0 : tc_abs(x);
  const double part = tc_normal_tail(t, tc_copysign(t, x));
  return x > 39.0 ? x : x <= 0.0 ? part : x - part;
}

// gelu for a result of at most 11 bits: a shorter polynomial and no correction of the square.
TC_FN float tc_gelu_half(float x) {
  const float t = tc_abs(x) > 15.0f ? 15.0f : tc_abs(x), inverse = 1.0f / (t + 3.0f);
  const float v = tc_fma(inverse, -0x1.ccccccp+2f, 0x1.666666p+0f);
  float p = tc_fma(0x1.fbb424p-10f, v, -0x1.b6cb58p-8f);
  p = tc_fma(p, v, -0x1.6b5322p-6f);
  p = tc_fma(p, v, 0x1.652f5ap-3f);
  p = tc_fma(p, v, -0x1.f73c56p-2f);
  p = tc_fma(p, v, 0x1.a4243ap-1f) * inverse;
  const float part = tc_exp_times(-0.5f * (t * t), p * tc_copysign(t, x));
  return x > 15.0f ? x : x <= 0.0f ? part : x - part;
}

TC_FN float tc_rsqrt(float x) { return 1.0f / tc_sqrt(x); }

TC_FN double tc_rsqrt(double x) { return 1.0 / tc_sqrt(x); }

TC_FN float tc_reciprocal(float x) { return 1.0f / x; }

TC_FN double tc_reciprocal(double x) { return 1.0 / x; }

// Sign and special cases of C99's pow around a magnitude |x|^y.
TC_FN double tc_pow_sign(double x, double y, double magnitude) {
  const bool whole = tc_trunc(y) == y, odd = whole && tc_trunc(0.5 * y) != 0.5 * y;
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return x + y;
  if (tc_abs(x) == 1.0 && (y - y != 0.0)) return 1.0;
  if (x < 0.0 && !whole && x - x == 0.0) return tc_from_bits(0x7ff8000000000000ull);
  return odd && (tc_bits(x) >> 63) ? -magnitude : magnitude;
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
  const unsigned long long shifted = tc_bits(tiny ? a * 0x1p+54 : a) - 0x3fe6a09e667f3bcdull;
  const double e = (double)(int)((long long)shifted >> 52) - (tiny ? 54.0 : 0.0);
  const double f = tc_from_bits((shifted & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull) - 1.0;
  const double d = 2.0 + f, d_rest = f - (d - 2.0);
  const double s = f / d, s_rest = (tc_fma(-s, d, f) - s * d_rest) / d;
  const double z = s * s, z_rest = tc_fma(s, s, -z) + 2.0 * s * s_rest;
  double p = tc_fma(z, 0x1.8618618618618p-4, 0x1.af286bca1af28p-4);
  p = tc_fma(p, z, 0x1.e1e1e1e1e1e1ep-4);
  p = tc_fma(p, z, 0x1.1111111111111p-3);
  p = tc_fma(p, z, 0x1.3b13b13b13b14p-3);
  p = tc_fma(p, z, 0x1.745d1745d1746p-3);
  p = tc_fma(p, z, 0x1.c71c71c71c71cp-3);
  p = tc_fma(p, z, 0x1.2492492492492p-2);
  p = tc_fma(p, z, 0x1.999999999999ap-2);
  p = p * z;  // 2/5 z + 2/7 z^2 + ...
  const double q = 0x1.5555555555555p-1 + p,
               q_rest = (0x1.5555555555555p-1 - q) + p + 0x1.5555555555555p-55;
  const double c = z * q, c_rest = tc_fma(z, q, -c) + z * q_rest + z_rest * q;  // z (2/3 + p)
  const double m = 2.0 * s, cubic = s * c,
               cubic_rest = tc_fma(s, c, -cubic) + s * c_rest + s_rest * c;
  const double e_high = e * 0x1.62e42p-1, e_low = e * 0x1.fdf473de6af28p-22;
  const double t0 = e_high + m,
               t0_rest = tc_abs(e_high) > tc_abs(m) ? (e_high - t0) + m : (m - t0) + e_high;
  const double t1 = t0 + cubic, t1_rest = (t0 - t1) + cubic;
  const double t2 = t1 + e_low,
               t2_rest = tc_abs(t1) > tc_abs(e_low) ? (t1 - t2) + e_low : (e_low - t2) + t1;
  const double low =
      t0_rest + t1_rest + t2_rest + 2.0 * s_rest + cubic_rest + e * -0x1.c4c67fc0d0951p-76;
  const double high = t2 + low, rest = (t2 - high) + low;
  const double product = y * high, product_rest = tc_fma(y, high, -product) + y * rest;
  const double power = tc_exp(product);
  const bool plain = a > 0.0 && a <= 0x1.fffffffffffffp+1023 && power > 0.0 &&
                     power <= 0x1.fffffffffffffp+1023;
  const double special = tc_exp(y * tc_log(a));
  return tc_pow_sign(x, y, plain ? tc_fma(power, product_rest, power) : special);
}
