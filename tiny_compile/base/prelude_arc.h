// The inverses of sin, cos and tan (see prelude_math.h): a value near 0 is x + x^3 P(x^2), the others are
// reduced to that. What pi rounds away is added as a second constant.

// (atan(u) / u - 1) / u^2 of z = u^2, u <= 1 for f32 and u <= tan(pi/8) for f64.
TC_FN float tc_atan_kernel(float z) {
  float p = tc_fma(0x1.86406cp-10f, z, -0x1.2ba6b6p-7f);
  p = tc_fma(p, z, 0x1.aefb2cp-6f);
  p = tc_fma(p, z, -0x1.9115a4p-5f);
  p = tc_fma(p, z, 0x1.2006f8p-4f);
  p = tc_fma(p, z, -0x1.6dd8fep-4f);
  p = tc_fma(p, z, 0x1.c62cdap-4f);
  p = tc_fma(p, z, -0x1.248952p-3f);
  p = tc_fma(p, z, 0x1.999956p-3f);
  p = tc_fma(p, z, -0x1.555556p-2f);
  return p;
}

TC_FN double tc_atan_kernel(double z) {
  double p = tc_fma(0x1.0ad36a455cafbp-6, z, -0x1.1b33b923aa954p-5);
  p = tc_fma(p, z, 0x1.74ddd408bb4c1p-5);
  p = tc_fma(p, z, -0x1.ac7a938b69c93p-5);
  p = tc_fma(p, z, 0x1.e19a13b9fc6dfp-5);
  p = tc_fma(p, z, -0x1.110e880a7a521p-4);
  p = tc_fma(p, z, 0x1.3b1392d9e785cp-4);
  p = tc_fma(p, z, -0x1.745d165df3f95p-4);
  p = tc_fma(p, z, 0x1.c71c71c304b68p-4);
  p = tc_fma(p, z, -0x1.249249248d7eep-3);
  p = tc_fma(p, z, 0x1.9999999999953p-3);
  p = tc_fma(p, z, -0x1.5555555555555p-2);
  return p;
}

// atan(q), 0 <= q <= 1.
TC_FN float tc_atan_unit(float q) { return tc_fma(tc_atan_kernel(q * q) * q, q * q, q); }

// atan(q) = pi/4 + atan((q - 1) / (q + 1))
TC_FN double tc_atan_unit(double q) {
  const bool wide = q > 0x1.a827999fcef31p-2;
  const double u = wide ? (q - 1.0) / (q + 1.0) : q, z = u * u;
  const double rest = tc_fma(tc_atan_kernel(z) * z, u, wide ? 0x1.1a62633145c07p-55 : 0.0);
  return wide ? 0x1.921fb54442d18p-1 + (u + rest) : u + rest;
}

// atan(t) = pi/2 - atan(1/t), which is pi/2 long before 2^100.
TC_FN float tc_atan(float x) {
  const float t = tc_at_most(tc_abs(x), 0x1p+100f);
  const bool steep = t > 1.0f;
  const float part = tc_atan_unit(steep ? tc_inverse(t) : t);
  return tc_copysign(steep ? 0x1.921fb6p+0f - (part + 0x1.777a5cp-25f) : part, x);
}

TC_FN double tc_atan(double x) {
  const double t = tc_abs(x);
  const bool steep = t > 1.0;
  const double part = tc_atan_unit(steep ? 1.0 / t : t);
  return tc_copysign(steep ? 0x1.921fb54442d18p+0 - (part - 0x1.1a62633145c07p-54) : part, x);
}

// The angle of (x, y): of the lesser size over the greater, then pi/2 or pi more or less that. Of two
// zeros the quotient is 0, of two infinities 1.
TC_FN float tc_atan2(float y, float x) {
  const float a = tc_abs(y), b = tc_abs(x);
  const bool steep = a > b, left = (tc_bits(x) >> 31) != 0;
  const float high = steep ? a : b, low = steep ? b : a, quotient = low / high;
  const float part = tc_atan_unit(high == 0.0f ? 0.0f : low == high ? 1.0f : quotient);
  const float whole = steep ? 0x1.921fb6p+0f : left ? 0x1.921fb6p+1f : 0.0f;
  const float beyond = steep ? 0x1.777a5cp-25f : left ? 0x1.777a5cp-24f : 0.0f;
  const float angle = whole + ((steep != left ? -part : part) - beyond);
  return tc_is_nan(a + b) ? a + b : tc_copysign(angle, y);
}

TC_FN double tc_atan2(double y, double x) {
  const double a = tc_abs(y), b = tc_abs(x);
  const bool steep = a > b, left = (tc_bits(x) >> 63) != 0;
  const double high = steep ? a : b, low = steep ? b : a, quotient = low / high;
  const double part = tc_atan_unit(high == 0.0 ? 0.0 : low == high ? 1.0 : quotient);
  const double whole = steep ? 0x1.921fb54442d18p+0 : left ? 0x1.921fb54442d18p+1 : 0.0;
  const double beyond = steep ? -0x1.1a62633145c07p-54 : left ? -0x1.1a62633145c07p-53 : 0.0;
  const double angle = whole + ((steep != left ? -part : part) - beyond);
  return tc_is_nan(a + b) ? a + b : tc_copysign(angle, y);
}

// (asin(s) / s - 1) / s^2 of z = s^2, s <= 1/2.
TC_FN float tc_asin_kernel(float z) {
  float p = tc_fma(0x1.fb7ca4p-6f, z, 0x1.5a80ap-7f);
  p = tc_fma(p, z, 0x1.82db24p-6f);
  p = tc_fma(p, z, 0x1.efedf8p-6f);
  p = tc_fma(p, z, 0x1.6dc0fp-5f);
  p = tc_fma(p, z, 0x1.33331ep-4f);
  p = tc_fma(p, z, 0x1.555556p-3f);
  return p;
}

TC_FN double tc_asin_kernel(double z) {
  double p = tc_fma(0x1.e529c6fce9bb4p-6, z, -0x1.3b416bb7d9257p-6);
  p = tc_fma(p, z, 0x1.406192d124629p-6);
  p = tc_fma(p, z, 0x1.8f193743418ffp-9);
  p = tc_fma(p, z, 0x1.31622469ce5adp-7);
  p = tc_fma(p, z, 0x1.3b49de7121487p-7);
  p = tc_fma(p, z, 0x1.7b027ee1dd585p-7);
  p = tc_fma(p, z, 0x1.c990ad3d8fdcap-7);
  p = tc_fma(p, z, 0x1.1c4efce23019fp-6);
  p = tc_fma(p, z, 0x1.6e8ba123e494cp-6);
  p = tc_fma(p, z, 0x1.f1c71c7a52ba3p-6);
  p = tc_fma(p, z, 0x1.6db6db6dac1ep-5);
  p = tc_fma(p, z, 0x1.3333333333388p-4);
  p = tc_fma(p, z, 0x1.5555555555555p-3);
  return p;
}

// asin(t) = pi/2 - 2 asin(sqrt((1 - t) / 2)); the root of a negative number is a NaN.
TC_FN float tc_asin(float x) {
  const float t = tc_abs(x);
  const bool wide = t > 0.5f;
  const float z = wide ? tc_fma(t, -0.5f, 0.5f) : t * t, s = wide ? tc_sqrt(z) : t;
  const float rest = tc_asin_kernel(z) * z * s;
  const float high = 0x1.921fb6p-1f - s, lost = (0x1.921fb6p-1f - high) - s;
  const float steep = 2.0f * (high - ((rest + 0x1.777a5cp-26f) - lost));
  return tc_copysign(wide ? steep : s + rest, x);
}

TC_FN double tc_asin(double x) {
  const double t = tc_abs(x);
  const bool wide = t > 0.5;
  const double z = wide ? tc_fma(t, -0.5, 0.5) : t * t, s = wide ? tc_sqrt(z) : t;
  const double rest = tc_asin_kernel(z) * z * s;
  const double steep =
      (0x1.921fb54442d18p+0 - 2.0 * s) - tc_fma(2.0, rest, -0x1.1a62633145c07p-54);
  return tc_copysign(wide ? steep : s + rest, x);
}

// pi/2 - asin(x) near 0, 2 asin(sqrt((1 - x) / 2)) near 1, pi less that near -1.
TC_FN float tc_acos(float x) {
  const float t = tc_abs(x);
  const bool wide = t > 0.5f;
  const float z = wide ? tc_fma(t, -0.5f, 0.5f) : t * t, s = wide ? tc_sqrt(z) : x;
  const float rest = tc_asin_kernel(z) * z * s;
  const float middle = 0x1.921fb6p+0f - (s + (rest + 0x1.777a5cp-25f));
  const float edge = x < 0.0f ? middle : s + rest;
  return wide ? 2.0f * edge : middle;
}

TC_FN double tc_acos(double x) {
  const double t = tc_abs(x);
  const bool wide = t > 0.5;
  const double z = wide ? tc_fma(t, -0.5, 0.5) : t * t, s = wide ? tc_sqrt(z) : x;
  const double rest = tc_asin_kernel(z) * z * s;
  const double middle = 0x1.921fb54442d18p+0 - (s + (rest - 0x1.1a62633145c07p-54));
  const double edge = x < 0.0 ? middle : s + rest;
  return wide ? 2.0 * edge : middle;
}
