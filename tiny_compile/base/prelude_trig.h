// sin, cos and tan of the prelude (see prelude_math.h): f32 in f32, its huge angles reduced in double,
// which C++ does for every angle and selects, CUDA behind a branch; f64 with a branch for huge angles,
// which needs a thousand bits of 2/pi.

// An f32 angle less its nearest multiple of pi/2, as rest - excess, |rest| < 0.79, and the multiple
// modulo 4 in the low bits of `quarters`.
struct tc_quarter {
  float rest, excess;
  unsigned quarters;
};

// 1 / (2 pi) comes in parts of 29 bits; x has 24, so each product is exact and so is dropping its
// whole turns, of which the last part has none. The sum's quarter is taken off the first part, then
// the others are added in order: what cancels, does so exactly.
TC_FN tc_quarter tc_reduce_huge(float x) {
  const double wide = (double)x;
  const double p0 = wide * 0x1.45f306cp-3, t0 = p0 - tc_round(p0);
  const double p1 = wide * 0x1.c9c882ap-31, t1 = p1 - tc_round(p1);
  const double p2 = wide * 0x1.4fe13a8p-61, t2 = p2 - tc_round(p2);
  const double p3 = wide * 0x1.f47d4d3p-88, t3 = p3 - tc_round(p3);
  const double p4 = wide * 0x1.dc0db62p-118, t4 = p4 - tc_round(p4);
  const double t5 = wide * 0x1.2b327887208p-147;
  const double sum = t0 + (t1 + (t2 + (t3 + (t4 + t5))));
  const double shifted = tc_fma(sum, 4.0, 0x1.8p+52), quarters = shifted - 0x1.8p+52;
  const double turn = tc_fma(quarters, -0.25, t0) + t1 + t2 + t3 + t4 + t5;
  const double angle = turn * 0x1.921fb54442d18p+2;
  const float rest = (float)angle;
  return tc_quarter{rest, (float)((double)rest - angle), (unsigned)tc_bits(shifted)};
}

// On a GPU a call: what hardly ever runs shall take neither registers nor room among instructions.
#ifdef __CUDACC__
__device__ __noinline__ tc_quarter tc_reduce_far(float x) { return tc_reduce_huge(x); }
#else
TC_FN tc_quarter tc_reduce_far(float x) { return tc_reduce_huge(x); }
#endif

// x - n pi/2 with pi/2 in three parts of 24 bits (Cody and Waite): the first difference is exact. Without
// the excess, which tc_reduce_finely has.
TC_FN tc_quarter tc_reduce(float x) {
  if (tc_abs(x) > 0x1p+17f) return tc_reduce_far(x);
  const float shifted = tc_fma(x, 0x1.45f306p-1f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
  const float part = tc_fma(n, -0x1.921fb4p+0f, x), near = tc_fma(n, -0x1.4442dp-24f, part);
  return tc_quarter{tc_fma(n, -0x1.84698ap-48f, near), 0.0f, tc_bits(shifted)};
}

// With the excess: of the second product `high` and what that lost, of the second difference.
TC_FN tc_quarter tc_reduce_finely(float x) {
  if (tc_abs(x) > 0x1p+17f) return tc_reduce_far(x);
  const float shifted = tc_fma(x, 0x1.45f306p-1f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
  const float part = tc_fma(n, -0x1.921fb4p+0f, x), high = n * 0x1.4442dp-24f;
  const float rest = part - high, lost = tc_fma(n, 0x1.4442dp-24f, -high);
  return tc_quarter{rest, ((rest - part) + high) + tc_fma(n, 0x1.84698ap-48f, lost),
                    tc_bits(shifted)};
}

// sin(r) / r - 1 of z = r^2 - 2^-44: of r = 0 it is above 0, so that r + r * this keeps the sign of -0.
TC_FN float tc_sin_kernel(float z) {
  float p = tc_fma(-0x1.992036p-13f, z, 0x1.1106cep-7f);
  p = tc_fma(p, z, -0x1.555544p-3f);
  return p * z;
}

TC_FN float tc_cos_kernel(float z) {
  float p = tc_fma(0x1.99e054p-16f, z, -0x1.6c0c18p-10f);
  p = tc_fma(p, z, 0x1.55554ap-5f);
  p = tc_fma(p, z, -0.5f);
  return tc_fma(p, z, 1.0f);
}

// One of the two, by the parity of `quarters`, negated where bit 1 is set.
TC_FN float tc_sin_quarter(float r, unsigned quarters) {
  const float z = tc_fma(r, r, -0x1p-44f);
  const float value = (quarters & 1) ? tc_cos_kernel(z) : tc_fma(tc_sin_kernel(z), r, r);
  return tc_from_bits(tc_bits(value) ^ ((quarters & 2) << 30));
}

TC_FN float tc_sin(float x) {
  const tc_quarter angle = tc_reduce(x);
  return tc_sin_quarter(angle.rest, angle.quarters);
}

TC_FN float tc_cos(float x) {
  const tc_quarter angle = tc_reduce(x);
  return tc_sin_quarter(angle.rest, angle.quarters + 1);
}

// Of f16 and bf16: r P(r^2) within 1.1e-4 of sin(r), |r| < 1.575; negated where `half_turns` is odd.
TC_FN float tc_sin_short(float r, unsigned half_turns) {
  const float z = r * r,
              p = tc_fma(tc_fma(0x1.f1fa14p-8f, z, -0x1.53de54p-3f), z, 0x1.fff18cp-1f);
  return tc_from_bits(tc_bits(p * r) ^ (half_turns << 31));
}

// x - n pi with pi in two parts: n has 16 bits.
TC_FN float tc_less_half_turns(float x, float n) {
  return tc_fma(n, -0x1.4442dp-23f, tc_fma(n, -0x1.921fb4p+1f, x));
}

// The sine of huge angles, so many quarters further, as f32's: a call on a GPU (see tc_reduce_far).
#ifdef __CUDACC__
__device__ __noinline__ float tc_sin_far(float x, unsigned quarters) {
#else
TC_FN float tc_sin_far(float x, unsigned quarters) {
#endif
  const tc_quarter angle = tc_reduce_huge(x);
  return tc_sin_quarter(angle.rest, angle.quarters + quarters);
}

TC_FN float tc_sin_half(float x) {
  if (tc_abs(x) > 0x1p+17f) return tc_sin_far(x, 0u);
  const float shifted = tc_fma(x, 0x1.45f306p-2f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
  return tc_sin_short(tc_less_half_turns(x, n), tc_bits(shifted));
}

// cos(r + (k + 1/2) pi) is -sin(r), negated where k is odd.
TC_FN float tc_cos_half(float x) {
  if (tc_abs(x) > 0x1p+17f) return tc_sin_far(x, 1u);
  const float shifted = tc_fma(x, 0x1.45f306p-2f, -0.5f) + 0x1.8p+23f, n = shifted - 0x1.8p+23f;
  return tc_sin_short(tc_less_half_turns(x, n + 0.5f), tc_bits(shifted) + 1u);
}

// (tan(r) / r - 1) / z of z = r^2, |r| < 0.8.
TC_FN float tc_tan_kernel(float z) {
  float p = tc_fma(0x1.392bd6p-7f, z, 0x1.73412ep-9f);
  p = tc_fma(p, z, 0x1.932afcp-6f);
  p = tc_fma(p, z, 0x1.b524aap-5f);
  p = tc_fma(p, z, 0x1.1130cap-3f);
  return tc_fma(p, z, 0x1.5554dp-2f);
}

// tan(rest - excess), or -1 over it a quarter further. The derivative is about 1 + z; the inverse
// counts what the sum lost.
TC_FN float tc_tan(float x) {
  const tc_quarter angle = tc_reduce_finely(x);
  const float r = angle.rest, z = tc_fma(r, r, 0x1p-44f);  // see tc_sin_kernel
  const float part = tc_fma(tc_tan_kernel(z) * z, r, -angle.excess), value = r + part;
  const float inverse = tc_inverse(value), lost = (r - value) + part;
  const float error = tc_fma(-lost, inverse, tc_fma(-value, inverse, 1.0f));
  return (angle.quarters & 1) ? tc_fma(-inverse, error, -inverse) : value;
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

TC_FN double tc_tan(double x) {
  const tc_angle angle = tc_reduce(x);
  const double s = tc_sin_kernel(angle.value, angle.rest),
               c = tc_cos_kernel(angle.value, angle.rest);
  const double value = (angle.quadrant & 1) ? -c / s : s / c;
  return x - x != 0.0 ? x - x : x == 0.0 ? x : value;
}
