// Functions of f16 and bf16 (see prelude_math.h): a result that is rounded to 8 or 11 bits does not
// need an exp that is good to 24. Each is within 0.8 ulp of its dtype, whatever the argument.

// 2^f, |f| <= 1/2, within 7.2e-5.
TC_FN float tc_exp2_short(float f) {
  float p = tc_fma(0x1.c3f77ep-5f, f, 0x1.f0de32p-3f);
  p = tc_fma(p, f, 0x1.62f31ap-1f);
  return tc_fma(p, f, 0x1.fff692p-1f);
}

// exp(x) = 2^n 2^f. 2^n is added to the exponent of 2^f in two parts, the second by a product, as in tc_exp.
TC_FN float tc_exp_half(float x) {
  const float t = tc_at_most(tc_at_least(x, -104.0f), 89.0f);
  const float shifted = tc_fma(t, 0x1.715476p+0f, 0x1.8001fcp+23f);
  const float f = tc_fma(t, 0x1.715476p+0f, 0x1.8001fcp+23f - shifted);
  const unsigned both = tc_bits(shifted), half = both << 22 & 0xff800000u;
  const float part = tc_exp2_short(f) * tc_from_bits(half);
  return part * tc_from_bits((both << 23) - half);
}

// log(1 + g / 4) - less 2^-23 ln 2 (see tc_log_sum): a polynomial within 5e-5 of it.
TC_FN float tc_log_sum_short(float g, float less) {
  float p = tc_fma(0x1.699ed8p-13f, g, -0x1.15730ep-10f);
  p = tc_fma(p, g, 0x1.58769ap-8f);
  p = tc_fma(p, g, -0x1.ff6ffap-6f);
  p = tc_fma(p, g, 0x1.fffb9p-3f);
  return tc_fma(p, g, less * -0x1.62e43p-24f);
}

TC_FN float tc_log_half(float x) {
  const tc_log_parts parts = tc_split(x);
  return tc_log_special(parts.scaled, tc_log_sum_short(parts.g, parts.less));
}

TC_FN float tc_log1p_half(float x) {
  const float sum = 1.0f + x;
  const unsigned less = tc_less_exponent(tc_bits(sum));
  const float scale = tc_from_bits(0x40800000u + less), g = tc_fma(x, scale, -(4.0f - scale));
  return x == 0.0f ? x : tc_log_special(sum, tc_log_sum_short(g, (float)(int)less));
}

// max(x, 0) + log(1 + e), e = exp(-|x|) = 2^-64 2^(n + 64) 2^f; log(1 + e) is e P(e), within 8.4e-6.
TC_FN float tc_softplus_half(float x) {
  const float t = tc_at_most(tc_abs(x), 100.0f);
  const float shifted = tc_fma(t, -0x1.715476p+0f, 0x1.80008p+23f);
  const float f = tc_fma(t, -0x1.715476p+0f, 0x1.80008p+23f - shifted);
  const float e = tc_from_bits(tc_bits(tc_exp2_short(f)) + (tc_bits(shifted) << 23)) * 0x1p-64f;
  float p = tc_fma(-0x1.863986p-6f, e, 0x1.9e05a2p-4f);
  p = tc_fma(p, e, -0x1.ade2e4p-3f);
  p = tc_fma(p, e, 0x1.4cf276p-2f);
  p = tc_fma(p, e, -0x1.ff559cp-2f);
  p = tc_fma(p, e, 0x1.fffed2p-1f);
  return tc_fma(p, e, tc_at_least(x, 0.0f));
}

// x P(x^2) within 3.5e-5; from 2.7 on a half can hardly tell it from 1.
TC_FN float tc_erf_half(float x) {
  const float t = tc_at_most(tc_at_least(x, -0x1.59999ap+1f), 0x1.59999ap+1f), z = t * t;
  float p = tc_fma(-0x1.b58758p-21f, z, 0x1.df3fa2p-16f);
  p = tc_fma(p, z, -0x1.cee34p-12f);
  p = tc_fma(p, z, 0x1.087516p-8f);
  p = tc_fma(p, z, -0x1.9716a6p-6f);
  p = tc_fma(p, z, 0x1.c6dd1cp-4f);
  p = tc_fma(p, z, -0x1.8080bap-2f);
  return tc_fma(p, z, 0x1.20dadcp+0f) * t;
}

// exp(t) = 2^n 2^f, 2^n added to the exponent of 2^f.
TC_FN float tc_silu_half(float x) {
  const float t = tc_at_most(tc_abs(x), 100.0f);
  const float shifted = tc_fma(t, 0x1.715476p+0f, 0x1.7fffcp+23f);
  const float f = tc_fma(t, 0x1.715476p+0f, 0x1.7fffcp+23f - shifted);
  const float power = tc_from_bits(tc_bits(tc_exp2_short(f)) + (tc_bits(shifted) << 23));
  return tc_fma(tc_inverse(power + 0x1p-32f) * t, -0x1p-32f, tc_at_least(x, -0.0f));
}

// 2^-26 of 1 / (2^-26 + 2^-26 exp(-x)): a denormal result is rounded once. 2^n is multiplied by here, so that
// a NaN stays one, of whatever bits.
TC_FN float tc_sigmoid_half(float x) {
  const float t = tc_at_most(tc_at_least(x, -105.0f), 60.0f);
  const float shifted = tc_fma(t, -0x1.715476p+0f, 0x1.8000cap+23f);
  const float f = tc_fma(t, -0x1.715476p+0f, 0x1.8000cap+23f - shifted);
  const float power = tc_from_bits(tc_bits(shifted) << 23);
  return tc_inverse(tc_fma(tc_exp2_short(f), power, 0x1p-26f)) * 0x1p-26f;
}

// x P(x^2) / Q(x^2), within 3.5e-5; from 4.6 on a half cannot tell it from 1.
TC_FN float tc_tanh_half(float x) {
  const float t = tc_at_most(tc_at_least(x, -0x1.266666p+2f), 0x1.266666p+2f), z = t * t;
  const float p = tc_fma(tc_fma(0x1.7792cap-11f, z, 0x1.a98608p-4f), z, 1.0f);
  const float q = tc_fma(tc_fma(0x1.b2d5b8p-7f, z, 0x1.bf906p-2f), z, 1.0f);
  return t * p * tc_inverse(q);
}

// max(x, 0) - |x| P(X > |x|) of a normal X: log2 P is a polynomial.
TC_FN float tc_gelu_half(float x) {
  const float t = tc_at_most(tc_abs(x), 14.0f);
  float y = tc_fma(0x1.0ecfcep-25f, t, -0x1.07f7fcp-19f);
  y = tc_fma(y, t, 0x1.b97d1p-15f);
  y = tc_fma(y, t, -0x1.a3269ap-11f);
  y = tc_fma(y, t, 0x1.fbecfp-8f);
  y = tc_fma(y, t, -0x1.a8bffap-5f);
  y = tc_fma(y, t, -0x1.d84496p-2f);
  y = tc_fma(y, t, -0x1.2661b6p+0f);
  y = tc_fma(y, t, -0x1.0006bap+0f);
  const float shifted = y + 0x1.80008p+23f, f = y - (shifted - 0x1.80008p+23f);
  const float power = tc_from_bits(tc_bits(tc_exp2_short(f)) + (tc_bits(shifted) << 23));
  return tc_fma(power * t, -0x1p-64f, tc_at_least(x, -0.0f));
}
