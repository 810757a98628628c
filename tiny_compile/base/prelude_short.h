// Activations of f16 and bf16 (see prelude_math.h): a result that is rounded to 8 or 11 bits does not
// need an exp that is good to 24. Each is within 0.8 ulp of its dtype, whatever the argument.

// 2^f, |f| <= 1/2, within 7.2e-5.
TC_FN float tc_exp2_short(float f) {
  float p = tc_fma(0x1.c3f77ep-5f, f, 0x1.f0de32p-3f);
  p = tc_fma(p, f, 0x1.62f31ap-1f);
  return tc_fma(p, f, 0x1.fff692p-1f);
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
  float p = tc_fma(0x1.c3f73p-5f, f, 0x1.f0de26p-3f);
  p = tc_fma(p, f, 0x1.62f31ap-1f);
  p = tc_fma(p, f, 0x1.fff692p-1f);
  const float power = tc_from_bits(tc_bits(p) + (tc_bits(shifted) << 23));
  return tc_fma(power * t, -0x1p-64f, tc_at_least(x, -0.0f));
}
