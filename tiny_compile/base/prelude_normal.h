// erf and gelu of the prelude (see prelude_math.h).

// 2^64 t P(X > t) of a normal X, 0 <= t <= 15, as s exp(-t^2/2 - s + s g(s)), s = t / (t + 2).
// `rest` is what `rough` lacks of s, `lost` what `half` lacks of the square; s and s g(s) are kept
// apart because their sum's rounding would be that of the result. The caller takes 2^64 back, so
// that a denormal result is rounded once.
TC_FN float tc_normal_tail(float t) {
  const float inverse = tc_inverse(t + 2.0f), rough = t * inverse;
  const float rest = tc_fma(inverse, -2.0f, 1.0f) - rough, s = tc_fma(rough, rest, rough);
  float g = tc_fma(0x1.99c80ap-3f, s, -0x1.315dfap-1f);
  g = tc_fma(g, s, 0x1.338ecp-1f);
  g = tc_fma(g, s, -0x1.3b22eap-2f);
  g = tc_fma(g, s, 0x1.247ea8p-3f);
  g = tc_fma(g, s, 0x1.1d199p-4f);
  g = tc_fma(g, s, 0x1.248cbp-5f);
  g = tc_fma(g, s, -0x1.949de6p-4f);
  g = tc_fma(g, s, -0x1.79efe8p-2f);
  g = tc_fma(g, s, 0x1.9def32p-2f);
  const float v = 0.5f * t, half = v * t, lost = tc_fma(v, t, -half);
  const float near = tc_fma(s, 0x1.bd70a4p-1f, half);  // within .05 of half + s - s g
  const float shifted = tc_fma(near, -0x1.715476p+0f, 0x1.80017ep+23f);
  const float n = shifted - 0x1.80017ep+23f, high = tc_fma(n, -0x1.63p-1f, -half) - s;
  const float low = tc_fma(g, s, tc_fma(n, 0x1.bd0106p-13f, rest)) - lost;
  const float part = rough * tc_from_bits(tc_bits(shifted) << 23);
  return tc_fma(part, tc_expm1_kernel(high + low), part);
}

// factor P(X > t), 0 <= t <= 39, as factor / (t + 3) exp(-t^2/2 - s - g(s)), s = t / (t + 3),
// g(0) = -log 1.5. The exponent also takes back what the square, the sum and the reciprocal lost;
// s + g is kept apart because its rounding would be that of the result. The power of two is
// applied as 2^(n + 600) and 2^-600.
TC_FN double tc_normal_tail(double t, double factor) {
  const double d = t + 3.0, inverse = 1.0 / d, rough = t * inverse;
  const double error = tc_fma(-inverse, t - (d - 3.0), tc_fma(-inverse, d, 1.0));
  const double s = tc_fma(rough, error, rough), v = tc_fma(s, 0x1.13d84f613d84fp+1, -1.0);
  const double w = v * v;
  double odd = tc_fma(0x1.ab77cc1627622p-29, w, -0x1.049dc4acebd76p-25);
  odd = tc_fma(odd, w, 0x1.0e989fb1ff9f6p-23);
  odd = tc_fma(odd, w, -0x1.2e3dbbc9fd4e3p-23);
  odd = tc_fma(odd, w, -0x1.b4cf874237af8p-20);
  odd = tc_fma(odd, w, 0x1.d6720d1a6569ap-17);
  odd = tc_fma(odd, w, -0x1.308eaf4513d13p-14);
  odd = tc_fma(odd, w, 0x1.43e290952f03dp-12);
  odd = tc_fma(odd, w, -0x1.468f5f8da8e33p-10);
  odd = tc_fma(odd, w, 0x1.6f3c1095a8887p-8);
  odd = tc_fma(odd, w, -0x1.2c489a7edefb8p-5);
  odd = tc_fma(odd, w, 0x1.8bb976a6b4576p-3);
  double even = tc_fma(0x1.9adb56c3410f2p-29, w, -0x1.b421b8db7bd7ep-25);
  even = tc_fma(even, w, 0x1.ab870308803cdp-22);
  even = tc_fma(even, w, -0x1.08c46ba21ccfbp-19);
  even = tc_fma(even, w, 0x1.c7872da84c09bp-18);
  even = tc_fma(even, w, -0x1.f85946a47feeep-17);
  even = tc_fma(even, w, 0x1.2ac10176f4d8ep-19);
  even = tc_fma(even, w, 0x1.a4ae60d80dcdcp-13);
  even = tc_fma(even, w, -0x1.8d7d4d5f3d2dp-10);
  even = tc_fma(even, w, 0x1.2a10413fc298cp-7);
  even = tc_fma(even, w, -0x1.b55ac2a6d0a64p-5);
  even = tc_fma(even, w, -0x1.96e295af23123p-3);
  const double g = tc_fma(odd, v, even);
  const double square = t * t, lost = tc_fma(t, t, -square), half = 0.5 * square;
  const double shifted = tc_fma(half + (s + g), -0x1.71547652b82fep+0, 0x1.8000000000657p+52);
  const double n = shifted - 0x1.8000000000657p+52;
  const double high = tc_fma(-n, 0x1.62e42p-1, -half) - rough;
  double low = tc_fma(-rough, error, error - g);
  low = tc_fma(-n, 0x1.fdf473de6af28p-22, tc_fma(-0.5, lost, low));
  const double r = high + low, part = factor * inverse;
  const double e = tc_expm1_kernel(r, (high - r) + low);
  return tc_fma(part, e, part) * tc_from_bits(tc_bits(shifted) << 52) * 0x1p-600;
}

// The bits of tc_exp for -87 < x < 88, and NaN: one factor, no limits.
TC_FN float tc_exp_inside(float x) {
  const float shifted = tc_fma(x, 0x1.715476p+0f, 0x1.8000fep+23f),
              n = shifted - 0x1.8000fep+23f;
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, x));
  const float factor = tc_from_bits(tc_bits(shifted) << 23);
  return tc_fma(tc_expm1_kernel(r), factor, factor);
}

// x P(x^2) near zero, 1 - exp(x Q(x)) with x Q(x) = log(erfc(x)) elsewhere.
TC_FN float tc_erf(float x) {
  const float z = x * x, t = tc_at_most(tc_abs(x), 3.95f);
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
  const float large = 1.0f - tc_exp_inside(q * t);
  return tc_copysign(tc_abs(x) < 0.86f ? small : large, x);
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
  return tc_copysign(tc_abs(x) < 1.0 ? small : large, x);
}

// x P(X < x) = max(x, 0) - |x| P(X > |x|): nothing cancels below zero, and -inf gives -0.
TC_FN float tc_gelu(float x) {
  const float tail = tc_normal_tail(tc_at_most(tc_abs(x), 14.375f));
  return tc_fma(tail, -0x1p-64f, tc_at_least(x, -0.0f));
}

TC_FN double tc_gelu(double x) {
  const double t = tc_abs(x) > 39.0 ? 39.0 : tc_abs(x);
  return (x >= 0.0 ? x : -0.0) - tc_normal_tail(t, t);
}

// erfinv(x) / x is smooth in w = -log(1 - x^2) near zero and in sqrt(w) elsewhere (Giles,
// Approximating the erfinv function, 2011); what the leading coefficient rounds away is
// part of the next sum.
TC_FN float tc_erfinv(float x) {
  const float w = -tc_log(tc_fma(-x, x, 1.0f)), u = w - 0.5f;
  float p = tc_fma(-0x1.32e60ep-27f, u, 0x1.8b5fe4p-23f);
  p = tc_fma(p, u, -0x1.3fd33cp-20f);
  p = tc_fma(p, u, -0x1.7854bp-20f);
  p = tc_fma(p, u, 0x1.8e197ap-15f);
  p = tc_fma(p, u, -0x1.23ac06p-17f);
  p = tc_fma(p, u, -0x1.43fdf6p-9f);
  p = tc_fma(p, u, 0x1.0354f4p-7f);
  p = tc_fma(p, u, 0x1.ef212cp-3f);
  const float near = tc_fma(p, u, -0x1.aec866p-25f);
  const float v = tc_sqrt(w) - 3.125f;
  float q = tc_fma(-0x1.1c1182p-15f, v, 0x1.0536dap-13f);
  q = tc_fma(q, v, -0x1.c5544ep-14f);
  q = tc_fma(q, v, -0x1.4afcf2p-12f);
  q = tc_fma(q, v, 0x1.4beb02p-10f);
  q = tc_fma(q, v, -0x1.4af3e8p-9f);
  q = tc_fma(q, v, 0x1.f1476ap-9f);
  q = tc_fma(q, v, -0x1.5b5b8ep-8f);
  q = tc_fma(q, v, 0x1.cde39p-8f);
  q = tc_fma(q, v, 0x1.00f3b4p+0f);
  const float far = tc_fma(q, v, 0x1.66a966p-27f);
  const float result =
      w < 5.0f ? tc_fma(0x1.013c1p+0f, x, near * x) : tc_fma(0x1.7aaa3cp+1f, x, far * x);
  return x == 0.0f ? x : tc_abs(x) == 1.0f ? x * tc_from_bits(0x7f800000u) : result;
}

TC_FN double tc_erfinv(double x) {
  const double w = -tc_log((1.0 - x) * (1.0 + x)), root = tc_sqrt(w), u = w - 3.125;
  double near = tc_fma(-0x1.b2643e45e1856p-72, u, 0x1.e2aa7ddd776b6p-69);
  near = tc_fma(near, u, 0x1.79a647e43b44ep-66);
  near = tc_fma(near, u, -0x1.9a137911c05cfp-62);
  near = tc_fma(near, u, 0x1.669b9213d3cdfp-61);
  near = tc_fma(near, u, 0x1.1e1f9ee618b29p-56);
  near = tc_fma(near, u, -0x1.19ac650194dcap-53);
  near = tc_fma(near, u, -0x1.6b6b0fc6a580fp-55);
  near = tc_fma(near, u, 0x1.d5e95ecc5f898p-48);
  near = tc_fma(near, u, -0x1.6877e8ae70f27p-45);
  near = tc_fma(near, u, -0x1.6b86f85109f07p-44);
  near = tc_fma(near, u, 0x1.7236b79e1d57ep-39);
  near = tc_fma(near, u, -0x1.c8a6afa1550f4p-37);
  near = tc_fma(near, u, -0x1.dc3f457145cd3p-35);
  near = tc_fma(near, u, 0x1.20f544d62fff1p-30);
  near = tc_fma(near, u, -0x1.1a9eb00326b9bp-28);
  near = tc_fma(near, u, -0x1.f36ceed4416aep-26);
  near = tc_fma(near, u, 0x1.c6b4f8868f532p-22);
  near = tc_fma(near, u, -0x1.6e8a53c7ac2ffp-20);
  near = tc_fma(near, u, -0x1.d1d1f7c9ffa6dp-17);
  near = tc_fma(near, u, 0x1.879c2a20aeb2ep-13);
  near = tc_fma(near, u, -0x1.84576948359ddp-11);
  near = tc_fma(near, u, -0x1.8b6c33114ea2fp-8);
  near = tc_fma(near, u, 0x1.ebd80d9b13dfap-3);
  near = tc_fma(near, u, 0x1.a755e7c99ae86p+0);
  const double v = root - 3.25;
  double middle = tc_fma(-0x1.8c3857d0faac1p-30, v, 0x1.053a5b69dbae9p-27);
  middle = tc_fma(middle, v, -0x1.7b4174a43c47dp-27);
  middle = tc_fma(middle, v, -0x1.63934d43c8c68p-26);
  middle = tc_fma(middle, v, 0x1.0ef2cc0802555p-23);
  middle = tc_fma(middle, v, -0x1.07e13aaa994e8p-22);
  middle = tc_fma(middle, v, -0x1.9856b31be2091p-26);
  middle = tc_fma(middle, v, 0x1.8dc25dc0df161p-20);
  middle = tc_fma(middle, v, -0x1.0b96b91e8b479p-18);
  middle = tc_fma(middle, v, 0x1.89984a140efedp-19);
  middle = tc_fma(middle, v, 0x1.a245be6e20b5fp-17);
  middle = tc_fma(middle, v, -0x1.8cf45a16de60fp-15);
  middle = tc_fma(middle, v, 0x1.1e6aa5fbf1f1ep-14);
  middle = tc_fma(middle, v, 0x1.932e8d102d857p-16);
  middle = tc_fma(middle, v, -0x1.7448bc373ebfbp-12);
  middle = tc_fma(middle, v, 0x1.f3cc545f83fd5p-11);
  middle = tc_fma(middle, v, -0x1.ba9240da8b306p-10);
  middle = tc_fma(middle, v, 0x1.468eeca93f733p-9);
  middle = tc_fma(middle, v, -0x1.ebadabb9fbc24p-9);
  middle = tc_fma(middle, v, 0x1.5ffcfe5b6cdf1p-8);
  middle = tc_fma(middle, v, 0x1.0158a6d641d54p+0);
  middle = tc_fma(middle, v, 0x1.8abcc380d5a48p+1);
  const double t = root - 5.0;
  double far = tc_fma(-0x1.0119fe87491bbp-40, t, 0x1.a120576fb73abp-38);
  far = tc_fma(far, t, -0x1.16bfd3a832782p-36);
  far = tc_fma(far, t, 0x1.fe261eaef2769p-37);
  far = tc_fma(far, t, 0x1.0780d57720e35p-34);
  far = tc_fma(far, t, -0x1.a2216a1b5f5ffp-32);
  far = tc_fma(far, t, 0x1.6ce08d3a8b89fp-30);
  far = tc_fma(far, t, -0x1.e5ceb4bc09abbp-29);
  far = tc_fma(far, t, 0x1.0c759e8b5eacep-27);
  far = tc_fma(far, t, -0x1.055ca836c73e5p-26);
  far = tc_fma(far, t, 0x1.f299b3a96bdbbp-26);
  far = tc_fma(far, t, -0x1.223930aedff51p-24);
  far = tc_fma(far, t, 0x1.ebe28d6a5f5ap-23);
  far = tc_fma(far, t, -0x1.0a903094b2051p-20);
  far = tc_fma(far, t, 0x1.2fbcfe3f6cd42p-18);
  far = tc_fma(far, t, -0x1.4a34904a4be26p-16);
  far = tc_fma(far, t, 0x1.3ebf4efa2664bp-14);
  far = tc_fma(far, t, -0x1.c2f36aa14ff9ep-13);
  far = tc_fma(far, t, -0x1.22ea5df1c7efcp-13);
  far = tc_fma(far, t, 0x1.02a30d1fba10bp+0);
  far = tc_fma(far, t, 0x1.3664ddd1ad7fbp+2);
  const double result = x * (w < 6.25 ? near : w < 16.0 ? middle : far);
  return tc_abs(x) == 1.0 ? x * tc_from_bits(0x7ff0000000000000ull) : result;
}
