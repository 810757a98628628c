// How far is a shared function from the exact value, in units of the result's last place?
//   measure<float>("exp", 0, 1 << 20)  ->  1.00 ulp at 48.2068672
// f32 is compared with the C library's double, which has 29 bits more; f64 with
// its long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "tiny_compile/base/math.h"

namespace tiny_compile::ulp {

// The format of a result: its significand's bits and its smallest normal number,
// as in <limits>.
struct Format {
  int digits, min_exponent, max_exponent;
};

template <typename T>
constexpr Format format_of{std::numeric_limits<T>::digits, std::numeric_limits<T>::min_exponent,
                           std::numeric_limits<T>::max_exponent};
constexpr Format kF16{11, -13, 16}, kBf16{8, -125, 128};

// Wrong kinds of result (a NaN, an infinity, a zero's sign) count as a billion; that an
// overflow comes one step early or late, as one. A result smaller than `least` is measured in
// units of that, whatever a zero's sign.
template <typename Exact>
double error_of(double value, Exact exact, Format format, double least = 0) {
  const double wrong = 1e9;
  if (value != value || exact != exact) return value != value && exact != exact ? 0 : wrong;
  if (exact == 0 || value == 0) {
    if (least == 0 && std::signbit(value) != std::signbit(exact)) return wrong;
    if (value == exact) return 0;
  }
  const Exact end = std::ldexp(Exact(1), format.max_exponent - 1) * 2;  // may be infinite
  if (std::isinf(value) || std::fabs(exact) >= end) {
    const Exact near =
        std::ldexp(Exact(2) - std::ldexp(Exact(4), -format.digits), format.max_exponent - 1);
    if (std::signbit(value) != std::signbit(exact) || std::fabs(exact) < near) return wrong;
    return std::isinf(value) ? 0 : std::fabs(value) >= near ? 1 : wrong;
  }
  const Exact size = std::max(std::fabs(exact), static_cast<Exact>(least));
  const int exponent = size == 0 ? format.min_exponent : std::ilogb(size) + 1;
  const int last = std::max(exponent, format.min_exponent) - format.digits;
  return static_cast<double>(std::fabs(value - exact) / std::ldexp(Exact(1), last));
}

// The exact functions, in the precision of their argument.
template <typename Exact>
struct Reference {
  static Exact exp(Exact x) { return std::exp(x); }
  static Exact expm1(Exact x) { return std::expm1(x); }
  static Exact log(Exact x) { return std::log(x); }
  static Exact log1p(Exact x) { return std::log1p(x); }
  static Exact sin(Exact x) { return std::sin(x); }
  static Exact cos(Exact x) { return std::cos(x); }
  static Exact exp2(Exact x) { return std::exp2(x); }
  static Exact log2(Exact x) { return std::log2(x); }
  static Exact log10(Exact x) { return std::log10(x); }
  static Exact tan(Exact x) { return std::tan(x); }
  static Exact asin(Exact x) { return std::asin(x); }
  static Exact acos(Exact x) { return std::acos(x); }
  static Exact atan(Exact x) { return std::atan(x); }
  static Exact tanh(Exact x) { return std::tanh(x); }
  static Exact erf(Exact x) { return std::erf(x); }
  static Exact sqrt(Exact x) { return std::sqrt(x); }
  static Exact rsqrt(Exact x) { return 1 / std::sqrt(x); }
  static Exact reciprocal(Exact x) { return 1 / x; }
  static Exact sigmoid(Exact x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  }
  static Exact silu(Exact x) {
    if (std::isinf(x)) return x > 0 ? x : -Exact(0);
    return x < 0 ? x * std::exp(x) / (1 + std::exp(x)) : x / (1 + std::exp(-x));
  }
  static Exact softplus(Exact x) {
    return std::log1p(std::exp(-std::fabs(x))) + (x < 0 ? 0 : x);
  }
  // x P(X < x). The tail magnifies the rounding of x / sqrt(2) by x^2, so it is put back.
  static Exact gelu(Exact x) {
    if (std::isinf(x)) return x > 0 ? x : -Exact(0);
    const Exact root = static_cast<Exact>(0.70710678118654752440084436210484903928L);
    const Exact root_rest = sizeof(Exact) > 8 ? static_cast<Exact>(0x1.65f626cdd52bp-66L) : 0;
    const Exact z = -x * root;
    const Exact lost = std::fma(-x, root, -z) - x * root_rest;
    const Exact slope = static_cast<Exact>(1.12837916709551257389615890312154517169L);
    return x / 2 * (std::erfc(z) - slope * std::exp(-z * z) * lost);
  }
  // A step of Halley's from a good start: its error is that of erf, of 1 - x near 1.
  static Exact erfinv(Exact x) {
    const Exact t = std::fabs(x);
    if (!(t < 1)) return t == 1 ? x * HUGE_VAL : x * NAN;
    const Exact y = prelude::tc_erfinv(static_cast<double>(t));
    const Exact off = t < 0.5 ? std::erf(y) - t : (1 - t) - std::erfc(y);
    const Exact newton =
        off * static_cast<Exact>(0.886226925452758013649083741670572591L) * std::exp(y * y);
    return std::copysign(y - newton / (1 + y * newton), x);
  }
  static Exact lgamma(Exact x) { return std::lgamma(x); }
  // The recurrence up to 20, then the asymptotic series; the reflection below 0.
  static Exact digamma(Exact x) {
    using Wide = long double;
    const Wide wide = x, pi = 3.14159265358979323846264338327950288L;
    if (std::isinf(x)) return x > 0 ? x : NAN;
    if (x == 0) return std::copysign(HUGE_VAL, -x);
    if (x < 0 && x == std::floor(x)) return NAN;
    Wide y = x < 0 ? 1 - wide : wide, sum = 0;
    for (; y < 20; y++) sum -= 1 / y;
    const Wide w = 1 / (y * y);
    const Wide even[] = {1 / 12.0L,   -1 / 120.0L,     1 / 252.0L,
                         -1 / 240.0L, 1 / 132.0L,      -691 / 32760.0L,
                         1 / 12.0L,   -3617 / 8160.0L, 43867 / 14364.0L};
    Wide series = 0;
    for (int k = 8; k >= 0; k--) series = (series + even[k]) * w;
    sum += std::log(y) - 1 / (2 * y) - series;
    if (x > 0) return static_cast<Exact>(sum);
    const Wide r = wide - std::round(wide);
    return static_cast<Exact>(sum - pi * std::cos(pi * r) / std::sin(pi * r));
  }
  static Exact atan2(Exact y, Exact x) { return std::atan2(y, x); }
  static Exact logaddexp(Exact x, Exact y) {
    const Exact m = std::max(x, y);
    if (x != x || y != y) return NAN;
    if (std::isinf(x) || std::isinf(y)) return m;
    return m + std::log1p(std::exp(-std::fabs(x - y)));
  }
  static Exact pow(Exact x, Exact y) { return std::pow(x, y); }
  // 30 terms and Euler and Maclaurin's formula; below 0 one term after the other.
  static Exact zeta(Exact s, Exact q) {
    using Wide = long double;
    if (s == 1) return HUGE_VAL;
    if (s < 1 || s != s || q != q) return NAN;
    if (q <= 0 && q == std::floor(q)) return HUGE_VAL;
    if (q < 0 && s != std::floor(s)) return NAN;
    Wide sum = 0, a = q;
    for (; a < 30; a++) sum += std::pow(a, -static_cast<Wide>(s));
    const Wide power = std::pow(a, -static_cast<Wide>(s));
    const Wide even[] = {1 / 12.0L,          -1 / 720.0L,
                         1 / 30240.0L,       -1 / 1209600.0L,
                         1 / 47900160.0L,    -691 / 1307674368000.0L,
                         1 / 74724249600.0L, -3617 / 10670622842880000.0L};
    Wide factor = s / a, series = 0.5L;
    for (int j = 0; j < 8; j++) {
      series += even[j] * factor;
      factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
    }
    const Wide rest = std::pow(a, 1 - static_cast<Wide>(s)) / (s - 1);
    return static_cast<Exact>(sum + rest + (power > 0 ? power * series : 0));
  }
};

// lgamma and digamma of f64 have zeros below 0 where the two terms of a reflection cancel: their
// errors are in ulp of the two terms' sizes together. The digamma that we compare with knows 4e-19
// of its zero at 1.46.
inline double least_size(std::string_view name, double x) {
  if (!(x < 0)) return name == "digamma" ? 0x1p-6 : 0;
  const double pi = 3.14159265358979312, r = pi * (x - std::round(x));
  if (name == "lgamma")
    return std::fabs(std::log(std::fabs(std::sin(r)) / pi)) + std::lgamma(1 - x);
  return name == "digamma" ? std::log(1 - x) + std::fabs(pi / std::tan(r)) : 0;
}

// log(exp(x) + exp(y)) is 0 where a negative operand and what is added to it cancel: errors are in
// ulp of the larger of the two.
inline double least_size(std::string_view name, double x, double y) {
  if (name != "logaddexp" || !(x < 0 && y < 0)) return 0;
  return std::max(-std::max(x, y), std::log1p(std::exp(-std::fabs(x - y))));
}

// Every function of one real number but those that only round (floor, abs): X(name, bound of f32,
// bound of f64).
#define TC_ULP_FUNCTIONS(X) \
  X(exp, 2, 4)              \
  X(expm1, 2, 4)            \
  X(log, 2, 4)              \
  X(log1p, 2, 4)            \
  X(exp2, 2, 4)             \
  X(log2, 2, 4)             \
  X(log10, 2, 4)            \
  X(sin, 2, 4)              \
  X(cos, 2, 4)              \
  X(tan, 2, 4)              \
  X(asin, 2, 4)             \
  X(acos, 2, 4)             \
  X(atan, 2, 4)             \
  X(tanh, 2, 4)             \
  X(sigmoid, 2, 4)          \
  X(erf, 2, 4)              \
  X(erfinv, 2, 4)           \
  X(lgamma, 2, 4)           \
  X(digamma, 2, 4)          \
  X(gelu, 2, 4)             \
  X(silu, 2, 4)             \
  X(softplus, 2, 4)         \
  X(sqrt, 0.5, 0.5)         \
  X(rsqrt, 2, 4)            \
  X(reciprocal, 0.5, 0.5)

// A pseudorandom word for each i (splitmix64).
inline unsigned long long mix(unsigned long long i) {
  i = (i + 1) * 0x9e3779b97f4a7c15ull;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ull;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebull;
  return i ^ (i >> 31);
}

// Arguments where functions break: specials, thresholds, denormals, multiples of pi/2, huge
// angles, around 1, and otherwise any bits or a plain range.
template <typename T>
T argument(unsigned long long i) {
  using limits = std::numeric_limits<T>;
  const unsigned long long random = mix(i);
  const double unit = static_cast<double>(random >> 11) * 0x1p-53, side = random & 1 ? -1 : 1;
  const double special[] = {0,
                            1,
                            2,
                            0.5,
                            limits::infinity(),
                            limits::quiet_NaN(),
                            limits::max(),
                            limits::min(),
                            limits::denorm_min(),
                            limits::epsilon(),
                            1e22,
                            0x1p20,
                            0x1p27,
                            709.782712893384,
                            745.1332191019412,
                            88.72283935546875,
                            103.97208404541015625};
  const double edges[] = {709, 745, 88, 87, 104, 36.7, 38.4, 13, 8.3, 17.3, 0.35, 20, 5.9, 3.9};
  switch (i % 8) {
    case 0: return static_cast<T>(side * special[random / 2 % std::size(special)]);
    case 1: return static_cast<T>(side * edges[random / 2 % std::size(edges)] + unit);
    case 2: return static_cast<T>(side * unit) * limits::min() * 4;
    case 3: return static_cast<T>(side * std::floor(std::exp2(40 * unit)) * 1.5707963267948966);
    case 4:
      return static_cast<T>(side *
                            std::ldexp(1 + unit, 1 + random % (limits::max_exponent - 1)));
    case 5:
      return static_cast<T>(
          1 + side * std::ldexp(1 + unit, -2 - static_cast<int>(random / 2 % 54)));
    case 6: return static_cast<T>(side * unit * (1 << random / 2 % 11));
    default:
      if constexpr (sizeof(T) == 4) {
        return prelude::tc_from_bits(static_cast<unsigned>(random));
      } else {
        return prelude::tc_from_bits(random);
      }
  }
}

struct Worst {
  double error = 0, x = 0, y = 0;
  void add(double other_error, double other_x, double other_y = 0) {
    if (other_error > error) *this = {other_error, other_x, other_y};
  }
};

// Is an error plainly no worse than the worst? One rounding costs half an ulp, and an ulp is at
// least |right| / 2^digits.
template <typename T, typename Exact>
bool is_no_worse(T value, Exact right, double worst) {
  const Exact least = std::fabs(right) * (std::numeric_limits<T>::epsilon() / 2);
  if (right != 0 && value != 0 && std::fabs(value - right) <= worst * least) return true;
  const T rounded = static_cast<T>(right);
  return worst >= 0.5 && (prelude::tc_bits(rounded) == prelude::tc_bits(value) ||
                          (rounded != rounded && value != value));
}

// Of a function of one argument: sample(i) for i in [begin, end), and what was the worst before.
// With a name, least_size holds.
template <typename T, typename F, typename R, typename S>
Worst worst_of(F function, R exact, S sample, unsigned long long begin, unsigned long long end,
               std::string_view name = "", Worst worst = {}) {
  for (unsigned long long i = begin; i < end; i++) {
    const T x = sample(i), value = function(x);
    const auto right = exact(x);
    if (is_no_worse(value, right, worst.error)) continue;
    worst.add(error_of(value, right, format_of<T>, least_size(name, x)), x);
  }
  return worst;
}

// Arguments of pow: any, or ones whose power is an ordinary number.
template <typename T>
std::pair<T, T> pow_arguments(unsigned long long i) {
  T x = argument<T>(i), y = argument<T>(mix(i) >> 8);
  const double scale = static_cast<double>(mix(i) % 2000) / 1000 - 1;
  if (i % 16 >= 8) y = static_cast<T>(scale * 700 / (std::fabs(std::log(std::fabs(x))) + 1e-3));
  if (i % 32 >= 24) y = std::round(y);
  return {x, y};
}

// Of atan2: any, or two of about one size.
template <typename T>
std::pair<T, T> atan2_arguments(unsigned long long i) {
  const T y = argument<T>(i);
  const double unit = static_cast<double>(mix(i) >> 11) * 0x1p-53;
  return {y, i % 16 >= 8 ? static_cast<T>(y * (2 * unit - 1) * 4) : argument<T>(mix(i) >> 8)};
}

// Of zeta: s a whole number from 2 to 6, as in polygamma, q up to 2^20.
template <typename T>
std::pair<T, T> zeta_arguments(unsigned long long i) {
  const double unit = static_cast<double>(mix(i) >> 11) * 0x1p-53;
  return {static_cast<T>(2 + i % 5), static_cast<T>(std::exp2(40 * unit - 20))};
}

// Of logaddexp: any, or two so close to each other that both count.
template <typename T>
std::pair<T, T> logaddexp_arguments(unsigned long long i) {
  const T x = argument<T>(i);
  const double unit = static_cast<double>(mix(i) >> 11) * 0x1p-53;
  if (i % 32 >= 24) return {static_cast<T>(-std::exp2(unit * 4 - 3)), static_cast<T>(-unit)};
  return {x, i % 16 >= 8 ? static_cast<T>(x + 40 * unit - 20) : argument<T>(mix(i) >> 8)};
}

// Of a function of two arguments. With a name, least_size holds.
template <typename T, typename F, typename R, typename S>
Worst worst_of_two(F function, R exact, S sample, unsigned long long begin,
                   unsigned long long end, std::string_view name = "", Worst worst = {}) {
  for (unsigned long long i = begin; i < end; i++) {
    const auto [x, y] = sample(i);
    const T value = function(x, y);
    const auto right = exact(x, y);
    if (is_no_worse(value, right, worst.error)) continue;
    worst.add(error_of(value, right, format_of<T>, least_size(name, x, y)), x, y);
  }
  return worst;
}

#define TC_ULP_FUNCTIONS_OF_TWO(X) \
  X(pow, 2, 4)                     \
  X(atan2, 2, 4)                   \
  X(logaddexp, 2, 4)               \
  X(zeta, 2, 4)

}  // namespace tiny_compile::ulp
