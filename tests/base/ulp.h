// How far is a shared function from the exact value, in units of the result's last place?
//   measure<float>("exp", 0, 1 << 20)  ->  1.00 ulp at 48.2068672
// f32 is compared with the C library's double, which has 29 bits more; f64 with
// its long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

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
// overflow comes one step early or late, as one.
template <typename Exact>
double error_of(double value, Exact exact, Format format) {
  const double wrong = 1e9;
  if (value != value || exact != exact) return value != value && exact != exact ? 0 : wrong;
  if (exact == 0 || value == 0) {
    if (std::signbit(value) != std::signbit(exact)) return wrong;
    if (value == exact) return 0;
  }
  const Exact end = std::ldexp(Exact(1), format.max_exponent - 1) * 2;  // may be infinite
  if (std::isinf(value) || std::fabs(exact) >= end) {
    const Exact near =
        std::ldexp(Exact(2) - std::ldexp(Exact(4), -format.digits), format.max_exponent - 1);
    if (std::signbit(value) != std::signbit(exact) || std::fabs(exact) < near) return wrong;
    return std::isinf(value) ? 0 : std::fabs(value) >= near ? 1 : wrong;
  }
  const int exponent = exact == 0 ? format.min_exponent : std::ilogb(exact) + 1;
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
  static Exact tanh(Exact x) { return std::tanh(x); }
  static Exact erf(Exact x) { return std::erf(x); }
  static Exact rsqrt(Exact x) { return 1 / std::sqrt(x); }
  static Exact sigmoid(Exact x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  }
  static Exact silu(Exact x) {
    if (std::isinf(x)) return x > 0 ? x : -Exact(0);
    return x < 0 ? x * std::exp(x) / (1 + std::exp(x)) : x / (1 + std::exp(-x));
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
};

// X(name, bound of f32, bound of f64)
#define TC_ULP_FUNCTIONS(X) \
  X(exp, 2, 4)              \
  X(expm1, 2, 4)            \
  X(log, 2, 4)              \
  X(log1p, 2, 4)            \
  X(sin, 2, 4)              \
  X(cos, 2, 4)              \
  X(tanh, 2, 4)             \
  X(sigmoid, 2, 4)          \
  X(erf, 2, 4)              \
  X(gelu, 2, 4)             \
  X(silu, 2, 4)             \
  X(rsqrt, 2, 4)

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

// Of a function of one argument: sample(i) for i in [begin, end).
template <typename T, typename F, typename R, typename S>
Worst worst_of(F function, R exact, S sample, unsigned long long begin,
               unsigned long long end) {
  Worst worst;
  for (unsigned long long i = begin; i < end; i++) {
    const T x = sample(i), value = function(x);
    const auto right = exact(x);
    // An ulp is at least |right| / 2^digits: most errors are plainly no worse than the worst.
    const auto least = std::fabs(right) * (std::numeric_limits<T>::epsilon() / 2);
    if (right != 0 && value != 0 && std::fabs(value - right) <= worst.error * least) continue;
    worst.add(error_of(value, right, format_of<T>), x);
  }
  return worst;
}

// Of pow: bases and exponents from `argument`, or ones whose power is an ordinary number.
template <typename T, typename Exact>
Worst worst_of_pow(unsigned long long begin, unsigned long long end) {
  Worst worst;
  for (unsigned long long i = begin; i < end; i++) {
    T x = argument<T>(i), y = argument<T>(mix(i) >> 8);
    const double scale = static_cast<double>(mix(i) % 2000) / 1000 - 1;
    if (i % 16 >= 8)
      y = static_cast<T>(scale * 700 / (std::fabs(std::log(std::fabs(x))) + 1e-3));
    if (i % 32 >= 24) y = std::round(y);
    const Exact exact = std::pow(static_cast<Exact>(x), static_cast<Exact>(y));
    worst.add(error_of(prelude::tc_pow(x, y), exact, format_of<T>), x, y);
  }
  return worst;
}

}  // namespace tiny_compile::ulp
