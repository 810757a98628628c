// The gamma function's logarithm, its derivative and Hurwitz's zeta function, of which the higher
// derivatives are made (see prelude_math.h). f32 goes through f64 and is rounded once.
//
// lgamma of 1 + t, t in [0, 1.25), and digamma, t in [0, 1), are polynomials; below 8 the
// recurrence leads there, above it Stirling's series is taken, and what is not positive is
// reflected (Abramowitz and Stegun, Handbook of mathematical functions, 6.1 and 6.3). Below 0 the
// two terms of a reflection cancel at zeros: f64 is there within 4 ulp of the sum of their sizes.

// (sin(pi r) / (pi r) - 1) / r^2 of z = r^2, |r| <= 1/2.
TC_FN double tc_sine_pi_kernel(double z) {
  double p = tc_fma(0x1.080d6f89e0a7bp-22, z, -0x1.d3f28cd7ed53p-18);
  p = tc_fma(p, z, 0x1.3746c57917ca7p-13);
  p = tc_fma(p, z, -0x1.33816a0620ac5p-9);
  p = tc_fma(p, z, 0x1.ac6805cdf308ap-6);
  p = tc_fma(p, z, -0x1.86a8e4720c749p-3);
  p = tc_fma(p, z, 0x1.9f9cb402bc45dp-1);
  p = tc_fma(p, z, -0x1.a51a6625307d3p+0);
  return p;
}

// lgamma(1 + t) / (t (t - 1)), 0 <= t <= 1.25.
TC_FN double tc_lgamma_kernel(double t) {
  const double u = t - 0.625;
  double p = tc_fma(-0x1.72a4fe9ed3918p-21, u, 0x1.2d855cee2becdp-20);
  p = tc_fma(p, u, -0x1.2ca925609e861p-22);
  p = tc_fma(p, u, 0x1.35329bb1df146p-21);
  p = tc_fma(p, u, -0x1.63c694e7d9dbdp-19);
  p = tc_fma(p, u, 0x1.28a736c6a5a2bp-18);
  p = tc_fma(p, u, -0x1.b89c165b40394p-18);
  p = tc_fma(p, u, 0x1.7b5d69170467cp-17);
  p = tc_fma(p, u, -0x1.4c41ca7e9da4cp-16);
  p = tc_fma(p, u, 0x1.1e596cd9d83fep-15);
  p = tc_fma(p, u, -0x1.eefc50c263d34p-15);
  p = tc_fma(p, u, 0x1.ae691bdac462dp-14);
  p = tc_fma(p, u, -0x1.7836467dc996ep-13);
  p = tc_fma(p, u, 0x1.4ad2226e56db1p-12);
  p = tc_fma(p, u, -0x1.250cefc1046d7p-11);
  p = tc_fma(p, u, 0x1.05f40e0f9a47dp-10);
  p = tc_fma(p, u, -0x1.d9b6039f11e91p-10);
  p = tc_fma(p, u, 0x1.b2cd23bb1e86cp-9);
  p = tc_fma(p, u, -0x1.9755f4416f3d8p-8);
  p = tc_fma(p, u, 0x1.88f37b6cfbda3p-7);
  p = tc_fma(p, u, -0x1.8c66d24dc2cf0p-6);
  p = tc_fma(p, u, 0x1.aebb0c81e50d6p-5);
  p = tc_fma(p, u, -0x1.0d79494357498p-3);
  p = tc_fma(p, u, 0x1.dcfd339a88006p-2);
  return p;
}

// lgamma(y) = (y - 1/2) (log(y) - 1) + (log(2 pi) - 1) / 2 + S(1/y^2) / y,
// lgamma(x) = -log(|sin(pi x)| / pi) - lgamma(1 - x).
TC_FN double tc_lgamma(double x) {
  const bool mirrored = x <= 0.0;
  const double y = mirrored ? 1.0 - x : x;
  const bool far = y >= 8.0, below = y < 1.0;
  const double near = far ? 1.0 : y, whole = tc_floor(near);
  // At 2 the logarithm and lgamma(1 + t) would cancel.
  const bool above = (whole == 2.0) & (near < 2.25);
  const double base = above ? 1.0 : whole, t = near - base;
  double product = 1.0;
  for (int k = 1; k < 7; k++) product *= (double)k < base ? near - (double)k : 1.0;
  const double logarithm = tc_log((far | below) ? y : product);
  const double inverse = 1.0 / y, w = inverse * inverse;
  double s = tc_fma(0x1.4bffc9d89f5aap-8, w, -0x1.ef8d748ae6ca6p-10);
  s = tc_fma(s, w, 0x1.b92c33f944339p-11);
  s = tc_fma(s, w, -0x1.38134d4f88969p-11);
  s = tc_fma(s, w, 0x1.a01a017dcf9e1p-11);
  s = tc_fma(s, w, -0x1.6c16c16c149f4p-9);
  s = tc_fma(s, w, 0x1.5555555555555p-4);
  const double series =
      tc_fma(y - 0.5, logarithm - 1.0, tc_fma(s, inverse, 0x1.acfe390c97d69p-2));
  const double start =
      tc_fma(tc_fma(t, t, -t), tc_lgamma_kernel(t), below ? -logarithm : logarithm);
  const double value = far ? series : start;
  const double r = tc_abs(x - tc_round(x)), z = r * r;
  const double sine = tc_fma(tc_sine_pi_kernel(z) * z, r, r);
  const double reflected = -tc_log(mirrored ? sine : 1.0) - value;
  const bool pole = mirrored & (tc_round(x) == x);
  return pole ? tc_from_bits(0x7ff0000000000000ull) : mirrored ? reflected : value;
}

TC_FN float tc_lgamma(float x) { return (float)tc_lgamma((double)x); }

// digamma(1 + t) / (t - c), 0 <= t <= 1, where 1 + c is the zero.
TC_FN double tc_digamma_kernel(double t) {
  const double u = t - 0.5;
  double p = tc_fma(-0x1.6b107f71aa124p-13, u, 0x1.104c9d0897b58p-12);
  p = tc_fma(p, u, -0x1.3db05b36d9a48p-13);
  p = tc_fma(p, u, 0x1.dc8ae08af0fc4p-13);
  p = tc_fma(p, u, -0x1.f99f529bd0771p-12);
  p = tc_fma(p, u, 0x1.7b3b41b0b38cdp-11);
  p = tc_fma(p, u, -0x1.1002aaf6255f5p-10);
  p = tc_fma(p, u, 0x1.980fc9c9f0be8p-10);
  p = tc_fma(p, u, -0x1.33661f9073563p-9);
  p = tc_fma(p, u, 0x1.cd3e42d157015p-9);
  p = tc_fma(p, u, -0x1.5a071c746535bp-8);
  p = tc_fma(p, u, 0x1.03c00801ba958p-7);
  p = tc_fma(p, u, -0x1.86355f6f68797p-7);
  p = tc_fma(p, u, 0x1.256475e5ac975p-6);
  p = tc_fma(p, u, -0x1.b9f8b1367959dp-6);
  p = tc_fma(p, u, 0x1.4de9aa05d3418p-5);
  p = tc_fma(p, u, -0x1.fb442029cdbf4p-5);
  p = tc_fma(p, u, 0x1.8512e5905d18p-4);
  p = tc_fma(p, u, -0x1.2feeeb98a7cd8p-3);
  p = tc_fma(p, u, 0x1.eca189b8e6da1p-3);
  p = tc_fma(p, u, -0x1.b1cb63005ee97p-2);
  p = tc_fma(p, u, 0x1.e6f0cbb873617p-1);
  return p;
}

// digamma(y) = log(y) - 1/(2 y) - Q(1/y^2) / y^2, digamma(x) = digamma(1 - x) - pi / tan(pi x).
TC_FN double tc_digamma(double x) {
  const bool mirrored = x <= 0.0;
  const double y = mirrored ? 1.0 - x : x;
  const bool far = y >= 8.0, below = y < 1.0;
  const double near = far ? 1.0 : y, whole = tc_floor(near), t = near - whole;
  // The sum of the 1 / (y - k), in two fractions: each product of few factors is rounded seldom.
  double top = below ? -1.0 : 0.0, bottom = below ? y : 1.0, high_top = 0.0, high_bottom = 1.0;
  for (int k = 1; k < 4; k++) {
    const double factor = near - (double)k, high = near - (double)(k + 3);
    const bool counts = (double)k < whole, high_counts = (double)(k + 3) < whole;
    top = counts ? tc_fma(top, factor, bottom) : top;
    bottom = counts ? bottom * factor : bottom;
    high_top = high_counts ? tc_fma(high_top, high, high_bottom) : high_top;
    high_bottom = high_counts ? high_bottom * high : high_bottom;
  }
  const double off = (t - 0x1.d8b618d5af8fep-2) + 0x1.1e563779a1f5bp-56;
  const double start = tc_fma(off, tc_digamma_kernel(t), top / bottom) + high_top / high_bottom;
  const double inverse = 1.0 / y, w = inverse * inverse;
  double q = tc_fma(-0x1.329c90799cd87p-2, w, 0x1.47c69710d73ep-4);
  q = tc_fma(q, w, -0x1.58e68c895a207p-6);
  q = tc_fma(q, w, 0x1.f077209c32635p-8);
  q = tc_fma(q, w, -0x1.11110c0ff8838p-8);
  q = tc_fma(q, w, 0x1.0410410195bbfp-8);
  q = tc_fma(q, w, -0x1.1111111110d4fp-7);
  q = tc_fma(q, w, 0x1.5555555555555p-4);
  const double series = tc_log(far ? y : 1.0) - tc_fma(0.5, inverse, q * w);
  const double value = far ? series : start;
  const double r = x == 0.0 ? x : x - tc_round(x), h = 0.5 - tc_abs(r);
  const double sine = tc_copysign(tc_fma(tc_sine_pi_kernel(r * r) * (r * r), r, r), r);
  const double cosine = tc_fma(tc_sine_pi_kernel(h * h) * (h * h), h, h);
  const double reflected = tc_fma(-0x1.921fb54442d18p+1, cosine / sine, value);
  const bool pole = mirrored & (x != 0.0) & (r == 0.0);
  return pole ? tc_from_bits(0x7ff8000000000000ull) : mirrored ? reflected : value;
}

TC_FN float tc_digamma(float x) { return (float)tc_digamma((double)x); }

// (q + k)^-s; what the sum rounds away is put back.
TC_FN double tc_zeta_term(double s, double q, double k) {
  const double a = q + k, lost = q - (a - k), power = tc_pow(a, -s);
  return ((lost == 0.0) | (power == 0.0)) ? power : tc_fma(-power, s * lost / a, power);
}

// The sum of (q + k)^-s over k >= 0, q > 0: ten terms, then Euler and Maclaurin's formula, whose
// coefficients are B(2j) / (2j)!. From 16 + s on that formula alone is enough.
TC_FN double tc_zeta_series(double s, double q) {
  const double coefficients[10] = {0x1.5555555555555p-4,  -0x1.6c16c16c16c17p-10,
                                   0x1.1566abc011567p-15, -0x1.bbd779334ef0bp-21,
                                   0x1.66a8f2bf70ebep-26, -0x1.22805d644267fp-31,
                                   0x1.d6db2c4e09162p-37, -0x1.7da4e1f79955cp-42,
                                   0x1.355871d652e9ep-47, -0x1.f57d968caacf1p-53};
  const int terms = q < 16.0 + s ? 10 : 0;
  const double a = q + (double)terms, inverse = 1.0 / a;
  const double power = tc_zeta_term(s, q, (double)terms);
  double factor = s * inverse, series = 0.5;
  for (int j = 0; j < 10; j++) {
    series = tc_fma(coefficients[j], factor, series);
    const double next = s + (double)(2 * j + 1);
    factor *= next * inverse * ((next + 1.0) * inverse);
  }
  double sum = power > 0.0 ? power * series : 0.0;
  sum += tc_zeta_term(s - 1.0, q, (double)terms) / (s - 1.0);
  for (int k = terms - 1; k >= 0; k--) sum += tc_zeta_term(s, q, (double)k);
  return sum;
}

// Hurwitz's zeta function for s > 1. Below 0 the terms of both signs are sums of their own, with f the
// fraction of -q: zeta(s, 1 - f) + (-1)^s (zeta(s, f) - zeta(s, 1 - q)), for a whole s.
TC_FN double tc_zeta(double s, double q) {
  if (s == 1.0) return tc_from_bits(0x7ff0000000000000ull);
  if (s < 1.0) return tc_from_bits(0x7ff8000000000000ull);
  if (!(q <= 0.0)) return tc_zeta_series(s, q);
  if (q == tc_floor(q)) return tc_from_bits(0x7ff0000000000000ull);
  if (s != tc_floor(s)) return tc_from_bits(0x7ff8000000000000ull);
  const double f = -q - tc_floor(-q);
  const double mirror = tc_zeta_series(s, f) - tc_zeta_series(s, 1.0 - q);
  const bool odd = tc_floor(0.5 * s) * 2.0 != s;
  return tc_zeta_series(s, 1.0 - f) + (odd ? -mirror : mirror);
}

TC_FN float tc_zeta(float s, float q) { return (float)tc_zeta((double)s, (double)q); }
