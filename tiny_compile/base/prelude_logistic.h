// What one exp and one inverse of the prelude make (see prelude_math.h): tanh, sigmoid, silu; and
// softplus, whose derivative sigmoid is.

// q = e / d, e = exp(2 |x|) - 1, d = e + 2; the remainder counts what d lost.
TC_FN float tc_tanh(float x) {
  const float twice = 2.0f * tc_at_most(tc_abs(x), 10.0f);
  const float shifted = tc_fma(twice, 0x1.715476p+0f, 0x1.8000fep+23f);
  const float n = shifted - 0x1.8000fep+23f, power = tc_from_bits(tc_bits(shifted) << 23);
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, twice));
  const float e = tc_fma(tc_expm1_kernel(r), power, power - 1.0f), d = e + 2.0f;
  const float inverse = tc_inverse(d), q = e * inverse;
  const float rest = tc_fma(-q, e - (d - 2.0f), tc_fma(-q, d, e));
  return tc_copysign(tc_fma(rest, inverse, q), x);
}

TC_FN double tc_tanh(double x) {
  const double t = tc_abs(x), e = tc_expm1(2.0 * (t > 20.0 ? 20.0 : t));
  return tc_copysign(e / (e + 2.0), x);
}

// 2^Scale top / (1 + exp(x)), from -80 to what exp(x) 2^-Scale can hold. The caller takes 2^Scale
// back, so that a denormal result is rounded once; `rest` counts what 1 + exp(x), its inverse and
// q lost.
template <int Scale>
TC_FN float tc_logistic(float x, float top) {
  const float unit = tc_from_bits((127u - Scale) << 23), start = 0x1.8p+23f + (127 - Scale);
  const float shifted = tc_fma(x, 0x1.715476p+0f, start), n = shifted - start;
  const float power = tc_from_bits(tc_bits(shifted) << 23);
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, x));
  const float e = tc_fma(tc_expm1_kernel(r), power, power), inverse = tc_inverse(e + unit);
  const float q = top * inverse, rest = tc_fma(-q, unit, tc_fma(-q, e, top));
  return tc_fma(rest, inverse, q);
}

TC_FN float tc_sigmoid(float x) {
  const float clamped = tc_at_most(tc_at_least(x, -105.0f), 60.0f);
  return tc_logistic<26>(-clamped, 1.0f) * 0x1p-26f;
}

// x / (1 + exp(-x)) = max(x, 0) - |x| / (1 + exp(|x|)): -inf gives -0.
TC_FN float tc_silu(float x) {
  const float t = tc_at_most(tc_abs(x), 109.0f);
  return tc_fma(tc_logistic<32>(t, t), -0x1p-32f, tc_at_least(x, -0.0f));
}

// 2^600 e / (1 + e) or 2^600 / (1 + e), e = exp(-|x|); the quotient's remainder counts what 1 + e
// lost.
TC_FN double tc_logistic(double x) {
  const double t = tc_abs(x) > 752.0 ? 752.0 : tc_abs(x);
  const double shifted = tc_fma(t, -0x1.71547652b82fep+0, 0x1.8000000000657p+52);
  const double n = shifted - 0x1.8000000000657p+52,
               power = tc_from_bits(tc_bits(shifted) << 52);
  const double r = tc_fma(-n, 0x1.fdf473de6af28p-22, tc_fma(-n, 0x1.62e42p-1, -t));
  const double e = tc_fma(tc_expm1_kernel(r, 0.0), power, power);
  const double d = tc_fma(e, 0x1p-600, 1.0), lost = tc_fma(e, 0x1p-600, 1.0 - d);
  const double inverse = 1.0 / d, top = x < 0.0 ? e : 0x1p+600;
  const double q = top * inverse, rest = tc_fma(-q, lost, tc_fma(-q, d, top));
  return tc_fma(rest, inverse, q);
}

TC_FN double tc_sigmoid(double x) { return tc_logistic(x) * 0x1p-600; }

TC_FN double tc_silu(double x) {
  const double t = tc_abs(x) > 752.0 ? 752.0 : tc_abs(x);
  return tc_fma(tc_logistic(-t) * t, -0x1p-600, x >= 0.0 ? x : -0.0);
}

// log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|) as in tc_exp_below; log(1 + e) = e + e^2 Q(e).
TC_FN float tc_softplus(float x) {
  const float t = tc_at_most(tc_abs(x), 104.0f);
  const float shifted = tc_fma(t, -0x1.715476p+0f, 0x1.80017cp+23f),
              n = shifted - 0x1.80017cp+23f;
  const float r = tc_fma(n, 0x1.bd0106p-13f, tc_fma(n, -0x1.63p-1f, -t));
  const float power = tc_from_bits(tc_bits(shifted) << 23);
  const float e = tc_fma(tc_expm1_kernel(r), power, power) * 0x1p-63f;
  float q = tc_fma(0x1.0fb4b4p-9f, e, -0x1.bead4ep-7f);
  q = tc_fma(q, e, 0x1.57e962p-5f);
  q = tc_fma(q, e, -0x1.544586p-4f);
  q = tc_fma(q, e, 0x1.fea74ap-4f);
  q = tc_fma(q, e, -0x1.4a542ep-3f);
  q = tc_fma(q, e, 0x1.978278p-3f);
  q = tc_fma(q, e, -0x1.ffc42p-3f);
  q = tc_fma(q, e, 0x1.5553a6p-2f);
  q = tc_fma(q, e, -0x1.fffff8p-2f);
  return tc_fma(q * e, e, e) + tc_at_least(x, 0.0f);
}

TC_FN double tc_softplus(double x) {
  return tc_log1p(tc_exp(-tc_abs(x))) + (x < 0.0 ? 0.0 : x);
}
