#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/base/ulp.h"
#include "tests/catch.h"
#include "tiny_compile/base/math.h"

using namespace tiny_compile::prelude;

namespace {

using Long = long double;

// |value - exact| in units of the last place of `exact` rounded to T; 1e9 where
// one is special.
template <typename T>
Long ulps(T value, Long exact) {
  if (std::isnan(value) && std::isnan(exact)) return 0;
  const T nearest = static_cast<T>(exact);
  if (value == nearest) return std::signbit(value) == std::signbit(nearest) ? 0 : 1e9L;
  if (std::isnan(value) || std::isnan(exact)) return 1e9L;
  if (std::isinf(value) || std::isinf(nearest)) {  // at the edge of overflow
    const Long edge = 0.999999L * std::numeric_limits<T>::max();
    return std::fabs(exact) >= edge && std::fabs(Long{value}) >= edge ? 1 : 1e9L;
  }
  const int lowest = std::numeric_limits<T>::min_exponent - 1;
  const int exponent = exact == 0 ? lowest : std::max(std::ilogb(exact), lowest);
  return std::fabs(value - exact) /
         std::ldexp(1.0L, exponent + 1 - std::numeric_limits<T>::digits);
}

// Bit patterns of every magnitude, numbers near zero, and the edges.
template <typename T>
std::vector<T> samples(size_t count) {
  const T inf = std::numeric_limits<T>::infinity(), tiny = std::numeric_limits<T>::denorm_min();
  std::vector<T> values = {0,
                           -T(0),
                           1,
                           -1,
                           T(0.5),
                           -T(0.5),
                           inf,
                           -inf,
                           tiny,
                           -tiny,
                           T(NAN),
                           std::numeric_limits<T>::max(),
                           89,
                           -104,
                           T(710),
                           -746,
                           std::numeric_limits<T>::lowest(),
                           T(20),
                           -15,
                           -39,
                           T(1e10),
                           std::numeric_limits<T>::min()};
  std::mt19937_64 random(2025);
  std::uniform_real_distribution<T> near(-20, 20), nearer(-1, 1);
  while (values.size() < count) {
    if constexpr (sizeof(T) == 4) {
      values.push_back(tc_from_bits(static_cast<unsigned>(random())));
    } else {
      values.push_back(tc_from_bits(static_cast<unsigned long long>(random())));
    }
    values.push_back(near(random));
    values.push_back(nearer(random));
  }
  return values;
}

template <typename T, typename F, typename R>
void check_function(F function, R exact, Long limit, size_t count) {
  Long worst = 0;
  T where = 0;
  for (const T x : samples<T>(count)) {
    const Long error = ulps<T>(function(x), exact(static_cast<Long>(x)));
    if (error > worst) worst = error, where = x;
  }
  INFO("worst at " << where << ": " << function(where) << ", exactly "
                   << static_cast<double>(exact(static_cast<Long>(where))));
  CHECK(static_cast<double>(worst) <= static_cast<double>(limit));
}

// base/prelude_math.h's promise: f32 within 2 ulp, f64 within 4.
#define CHECK_BOTH(name, exact)                                             \
  check_function<float>([](float x) { return name(x); }, exact, 2, 200000); \
  check_function<double>([](double x) { return name(x); }, exact, 4, 100000)

}  // namespace

TEST_CASE("exp is within 2 and 4 ulp", "[prelude]") {
  CHECK_BOTH(tc_exp, [](Long x) { return std::exp(x); });
}

TEST_CASE("exp by one factor has the same bits below 43", "[prelude]") {
  size_t differ = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1009) {
    const float x = tc_from_bits(static_cast<unsigned>(bits));
    const unsigned one = tc_bits(tc_exp_below(x)), two = tc_bits(tc_exp(x));
    differ += std::isnan(x) ? !std::isnan(tc_exp_below(x)) : x < 43.0f && one != two;
  }
  CHECK(differ == 0);
  for (const float x : {42.999996f, -87.33655f, -103.97208f, -103.9721f, -104.0f, -1e30f})
    CHECK(tc_bits(tc_exp_below(x)) == tc_bits(tc_exp(x)));
  CHECK(tc_exp_below(-INFINITY) == 0.0f);
}

TEST_CASE("expm1 is within 2 and 4 ulp", "[prelude]") {
  CHECK_BOTH(tc_expm1, [](Long x) { return std::expm1(x); });
}

TEST_CASE("log is within 2 and 4 ulp", "[prelude]") {
  CHECK_BOTH(tc_log, [](Long x) { return std::log(x); });
}

TEST_CASE("logarithms of powers of 2 and 10 are exact", "[prelude]") {
  for (int k = -149; k < 128; k++) CHECK(tc_log2(std::ldexp(1.0f, k)) == static_cast<float>(k));
  float power = 1;
  for (int k = 0; k <= 10; k++, power *= 10) CHECK(tc_log10(power) == static_cast<float>(k));
}

TEST_CASE("exp without limits has the same bits between them", "[prelude]") {
  size_t differ = 0;
  for (int i = -87000; i <= 88000; i++) {
    const float x = static_cast<float>(i) * 1e-3f;
    differ += tc_bits(tc_exp_inside(x)) != tc_bits(tc_exp(x));
  }
  CHECK(differ == 0);
}

TEST_CASE("log1p is within 2 and 4 ulp", "[prelude]") {
  CHECK_BOTH(tc_log1p, [](Long x) { return std::log1p(x); });
}

// Where f32 reduces an angle itself, up to 2^17, multiples of pi/2 cancel most:
// 83443 of them, with their neighbours.
TEST_CASE("sin, cos and tan are within 2 ulp next to every multiple of pi/2", "[prelude]") {
  const auto nearest = [](uint64_t i) {
    const float x = static_cast<float>(static_cast<double>(i / 3) * 1.5707963267948966);
    return tc_from_bits(tc_bits(x) + static_cast<unsigned>(i % 3) - 1);
  };
  const uint64_t end = uint64_t{3} * 84000;
  const auto worst = [&](auto function, auto exact) {
    return tiny_compile::ulp::worst_of<float>(function, exact, nearest, 3, end).error;
  };
  CHECK(worst([](float x) { return tc_sin(x); }, [](double x) { return std::sin(x); }) <= 2);
  CHECK(worst([](float x) { return tc_cos(x); }, [](double x) { return std::cos(x); }) <= 2);
  CHECK(worst([](float x) { return tc_tan(x); }, [](double x) { return std::tan(x); }) <= 2);
}

TEST_CASE("sin and cos are within 2 and 4 ulp, of huge angles too", "[prelude]") {
  CHECK_BOTH(tc_sin, [](Long x) { return std::sin(x); });
  CHECK_BOTH(tc_cos, [](Long x) { return std::cos(x); });
}

TEST_CASE("tanh is within 2 and 4 ulp", "[prelude]") {
  CHECK_BOTH(tc_tanh, [](Long x) { return std::tanh(x); });
}

TEST_CASE("sigmoid is within 2 and 4 ulp", "[prelude]") {
  const auto exact = [](Long x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  };
  CHECK_BOTH(tc_sigmoid, exact);
}

TEST_CASE("erf is within 2 and 4 ulp", "[prelude]") {
  CHECK_BOTH(tc_erf, [](Long x) { return std::erf(x); });
}

namespace {

Long exact_gelu(Long x) {
  if (x < -200) return -0.0L;
  return x * (0.5L * std::erfc(-x * 0.70710678118654752440084436210485L));
}

Long exact_silu(Long x) { return x < -2000 ? -0.0L : x / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("gelu is within 2 and 4 ulp, far into the negative tail", "[prelude]") {
  CHECK_BOTH(tc_gelu, exact_gelu);
}

TEST_CASE("silu is within 2 and 4 ulp, far into the negative tail", "[prelude]") {
  CHECK_BOTH(tc_silu, exact_silu);
}

TEST_CASE("square roots and reciprocals are within 2 ulp", "[prelude]") {
  check_function<float>([](float x) { return tc_sqrt(x); }, [](Long x) { return sqrtl(x); },
                        0.5L, 100000);
  check_function<double>([](double x) { return tc_sqrt(x); }, [](Long x) { return sqrtl(x); },
                         0.501L, 100000);
  CHECK_BOTH(tc_rsqrt, [](Long x) { return 1 / std::sqrt(x); });
  CHECK_BOTH(tc_reciprocal, [](Long x) { return 1 / x; });
}

TEST_CASE("pow is within 4 ulp", "[prelude]") {
  for (const double y : {0.3, -2.5, 3.0, 37.7, -1.0, 0.5}) {
    CAPTURE(y);
    check_function<float>([=](float x) { return tc_pow(x, static_cast<float>(y)); },
                          [=](Long x) { return std::pow(x, static_cast<Long>(float(y))); }, 4,
                          30000);
    check_function<double>([=](double x) { return tc_pow(x, y); },
                           [=](Long x) { return std::pow(x, static_cast<Long>(y)); }, 4, 30000);
  }
}

TEST_CASE("pow's special cases are C's, sign of zero included", "[prelude]") {
  const double inf = INFINITY;
  const double values[] = {0.0,  -0.0, 1,    -1,  2,    -2,  3,     -3,     0.5,
                           -0.5, 2.5,  -2.5, inf, -inf, NAN, 1e300, -1e300, 1e-310};
  for (const double x : values) {
    for (const double y : values) {
      INFO("pow(" << x << ", " << y << ")");
      CHECK(ulps<double>(tc_pow(x, y), std::pow(Long{x}, Long{y})) <= 4);
      const float a = static_cast<float>(x), b = static_cast<float>(y);
      CHECK(ulps<float>(tc_pow(a, b), std::pow(Long{a}, Long{b})) <= 4);
    }
  }
}

TEST_CASE("a quotient by a divisor of many is what IEEE divides", "[prelude]") {
  std::mt19937 random(7);
  const auto number = [&](unsigned low, unsigned high,
                          unsigned signs) {  // exponents
    const unsigned exponent = low + static_cast<unsigned>(random()) % (high - low + 1);
    return tc_from_bits(
        static_cast<unsigned>((random() & signs) | exponent << 23 | (random() & 0x7fffffu)));
  };
  for (int i = 0; i < 20000; i++) {
    const tc_divisor by = tc_divide_by(number(127 - 60, 127 + 59, 0));
    for (int k = 0; k < 50; k++) {
      const float a = number(127 - 60, 127 + 59, 0x80000000u);
      if (!tc_divides(a, by) || tc_bits(tc_quotient(a, by)) != tc_bits(a / by.value)) {
        CAPTURE(a, by.value);
        CHECK(tc_divides(a, by));
        REQUIRE(tc_bits(tc_quotient(a, by)) == tc_bits(a / by.value));
      }
    }
    for (const float zero : {0.0f, -0.0f}) {
      REQUIRE(tc_divides(zero, by));
      REQUIRE(tc_bits(tc_quotient(zero, by)) == tc_bits(zero / by.value));
    }
  }
  const float inf = INFINITY;
  for (const float a : {inf, -inf, NAN, 1e-30f, 1e-44f, 3e38f})
    CHECK(!tc_divides(a, tc_divide_by(3)));
  for (const float b : {0.0f, -0.0f, -2.0f, inf, NAN, 1e-30f, 3e38f}) {
    for (const float a : {1.0f, 0.0f, -0.0f}) CHECK(!tc_divides(a, tc_divide_by(b)));
  }
}

TEST_CASE("a quotient is right for all 2^23 significands", "[prelude]") {
  for (const float value :
       {3.0f, 9.0f, 127.0f, 0x1.6a09e6p+0f, 0x1.fffffep+0f, 0x1.fffffcp+0f}) {
    const tc_divisor by = tc_divide_by(value);
    int64_t wrong = 0;
    for (unsigned significand = 0; significand < 1u << 23; significand++) {
      const float a = tc_from_bits(0x3f800000u | significand);
      wrong += tc_quotient(a, by) != a / value;
    }
    CAPTURE(value);
    CHECK(wrong == 0);
  }
}

TEST_CASE("odd functions keep the sign of zero", "[prelude]") {
  for (const float zero : {0.0f, -0.0f}) {
    const bool sign = std::signbit(zero);
    CHECK(std::signbit(tc_sin(zero)) == sign);
    CHECK(std::signbit(tc_tan(zero)) == sign);
    CHECK(std::signbit(tc_atan(zero)) == sign);
    CHECK(std::signbit(tc_tanh(zero)) == sign);
    CHECK(std::signbit(tc_erf(zero)) == sign);
    CHECK(std::signbit(tc_gelu(zero)) == sign);
    CHECK(std::signbit(tc_gelu_half(zero)) == sign);
    CHECK(std::signbit(tc_silu(zero)) == sign);
    CHECK(std::signbit(tc_silu_half(zero)) == sign);
    CHECK(std::signbit(tc_expm1(zero)) == sign);
    CHECK(std::signbit(tc_log1p(zero)) == sign);
    CHECK(std::signbit(tc_sqrt(zero)) == sign);
    CHECK(std::signbit(tc_erf(double{zero})) == sign);
    CHECK(std::signbit(tc_tanh(double{zero})) == sign);
    CHECK(std::signbit(tc_gelu(double{zero})) == sign);
    CHECK(std::signbit(tc_silu(double{zero})) == sign);
  }
}

namespace {

// A half decoded by its definition.
double decoded(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1u << mantissa_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign * std::ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <typename Half>
constexpr int mantissa_of() {
  return std::is_same_v<Half, tc_f16> ? 10 : 7;
}

template <typename Half, typename From>
unsigned encoded(From x) {
  if constexpr (std::is_same_v<Half, tc_f16>) return tc_to_f16(x).bits;
  if constexpr (std::is_same_v<Half, tc_bf16>) return tc_to_bf16(x).bits;
}

// Rounding alone is rounding to a half, as f32.
template <typename Half>
void check_rounded(float x) {
  const bool is_f16 = std::is_same_v<Half, tc_f16>;
  const float want = tc_to_f32(Half{static_cast<unsigned short>(encoded<Half>(x))});
  REQUIRE(tc_bits(is_f16 ? tc_round_f16(x) : tc_round_bf16(x)) == tc_bits(want));
}

template <typename Half>
void check_every_pattern() {
  const int mantissa = mantissa_of<Half>();
  for (unsigned bits = 0; bits < 65536; bits++) {
    const float value = tc_to_f32(Half{static_cast<unsigned short>(bits)});
    const double exact = decoded(bits, 15 - mantissa, mantissa);
    CAPTURE(bits);
    if (std::isnan(exact)) {
      REQUIRE(std::isnan(value));
      REQUIRE(std::isnan(decoded(encoded<Half>(value), 15 - mantissa, mantissa)));
      continue;
    }
    REQUIRE(double{value} == exact);
    REQUIRE(std::signbit(value) == (bits >> 15 == 1));
    REQUIRE(encoded<Half>(value) == bits);
    REQUIRE(encoded<Half>(double{value}) == bits);
    check_rounded<Half>(value);
  }
}

// Between neighbours: the middle goes to the even one, what is beyond it to the
// nearer.
template <typename Half>
void check_every_tie() {
  const int mantissa = mantissa_of<Half>();
  const unsigned infinity = 0x7fff >> mantissa << mantissa;
  for (unsigned low = 0; low < infinity; low++) {
    const double below = decoded(low, 15 - mantissa, mantissa);
    const double step = decoded(low == 0 ? 1 : low, 15 - mantissa, mantissa) -
                        decoded(low == 0 ? 0 : low - 1, 15 - mantissa, mantissa);
    const bool starts_binade = low + 1 == infinity ? false : true;
    const double above =
        starts_binade ? decoded(low + 1, 15 - mantissa, mantissa) : below + step;
    const double middle = below + (above - below) / 2;
    const unsigned even = low % 2 == 0 ? low : low + 1;
    for (const unsigned sign : {0u, 0x8000u}) {
      const double tie = sign ? -middle : middle, away = sign ? -INFINITY : INFINITY;
      CAPTURE(low, tie);
      REQUIRE(encoded<Half>(tie) == (even | sign));
      REQUIRE(encoded<Half>(std::nextafter(tie, away)) == ((low + 1) | sign));
      REQUIRE(encoded<Half>(std::nextafter(tie, 0.0)) == (low | sign));
      const float narrow = static_cast<float>(tie);
      if (double{narrow} != tie) continue;  // half the least bf16 denormal
      REQUIRE(encoded<Half>(narrow) == (even | sign));
      REQUIRE(encoded<Half>(std::nextafter(narrow, static_cast<float>(away))) ==
              ((low + 1) | sign));
      REQUIRE(encoded<Half>(std::nextafter(narrow, 0.0f)) == (low | sign));
      check_rounded<Half>(narrow);
      check_rounded<Half>(std::nextafter(narrow, static_cast<float>(away)));
      check_rounded<Half>(std::nextafter(narrow, 0.0f));
    }
  }
}

}  // namespace

TEST_CASE("every f16 and bf16 converts to f32 and back exactly", "[prelude]") {
  check_every_pattern<tc_f16>();
  check_every_pattern<tc_bf16>();
}

TEST_CASE("f16 rounds to nearest, ties to even, once", "[prelude]") {
  check_every_tie<tc_f16>();
}

TEST_CASE("bf16 rounds to nearest, ties to even, once", "[prelude]") {
  check_every_tie<tc_bf16>();
}

TEST_CASE("halves overflow to inf, vanish to a signed zero, keep NaN", "[prelude]") {
  CHECK(tc_to_f16(1e30f).bits == 0x7c00);
  CHECK(tc_to_f16(-1e30).bits == 0xfc00);
  CHECK(tc_to_bf16(FLT_MAX).bits == 0x7f80);
  CHECK(tc_to_bf16(1e300).bits == 0x7f80);
  CHECK(tc_to_f16(-1e-30f).bits == 0x8000);
  CHECK(tc_to_f16(1e-300).bits == 0);
  CHECK(tc_to_bf16(-1e-300).bits == 0x8000);
  for (const unsigned bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7fc00000u}) {
    const float nan = tc_from_bits(bits);
    CHECK(std::isnan(tc_to_f32(tc_to_f16(nan))));
    CHECK(std::isnan(tc_to_f32(tc_to_bf16(nan))));
    CHECK(std::isnan(tc_round_f16(nan)));
    CHECK(std::isnan(tc_round_bf16(nan)));
  }
}

namespace {

// Every half, as f32, is rounded to within one step of the exact result; a NaN stays one, a GPU's (0x7fffffff)
// as well.
template <typename Half>
void check_halves(float (*function)(float), Long (*exact)(Long)) {
  for (const unsigned nan : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0xffffffffu, 0x7fc00101u})
    REQUIRE(std::isnan(function(tc_from_bits(nan))));
  for (unsigned bits = 0; bits < 65536; bits++) {
    const float x = tc_to_f32(Half{static_cast<unsigned short>(bits)});
    if (std::isnan(x)) continue;
    CAPTURE(x);
    const auto want = static_cast<double>(exact(x));
    const unsigned found = encoded<Half>(function(x)), right = encoded<Half>(want);
    const int apart = static_cast<int>(found) - static_cast<int>(right);
    REQUIRE((std::isnan(want) ? std::isnan(function(x)) : std::abs(apart) <= 1));
  }
}

}  // namespace

TEST_CASE("functions of every f16 and bf16 are within one ulp of the dtype", "[prelude]") {
  const auto exact_sigmoid = [](Long x) { return 1 / (1 + std::exp(-x)); };
  const auto exact_tanh = [](Long x) { return std::tanh(x); };
  check_halves<tc_f16>(tc_sigmoid_half, exact_sigmoid);
  check_halves<tc_bf16>(tc_sigmoid_half, exact_sigmoid);
  check_halves<tc_f16>(tc_tanh_half, exact_tanh);
  check_halves<tc_bf16>(tc_tanh_half, exact_tanh);
#define CHECK_HALVES(name)                                  \
  {                                                         \
    const auto exact = [](Long x) { return std::name(x); }; \
    check_halves<tc_f16>(tc_##name##_half, exact);          \
    check_halves<tc_bf16>(tc_##name##_half, exact);         \
  }
  CHECK_HALVES(exp)
  CHECK_HALVES(log)
  CHECK_HALVES(log1p)
  CHECK_HALVES(sin)
  CHECK_HALVES(cos)
  CHECK_HALVES(erf)
  const auto exact_softplus = [](Long x) {
    return std::log1p(std::exp(-std::abs(x))) + (x < 0 ? 0 : x);
  };
  check_halves<tc_f16>(tc_softplus_half, exact_softplus);
  check_halves<tc_bf16>(tc_softplus_half, exact_softplus);
#undef CHECK_HALVES
  check_halves<tc_f16>(tc_gelu_half, exact_gelu);
  check_halves<tc_bf16>(tc_gelu_half, exact_gelu);
  check_halves<tc_f16>(tc_silu_half, exact_silu);
  check_halves<tc_bf16>(tc_silu_half, exact_silu);
}

TEST_CASE("popcount, shifts and powers of every byte", "[prelude]") {
  for (int a = -128; a < 128; a++) {
    const auto value = static_cast<signed char>(a);
    const auto byte = static_cast<unsigned char>(a);
    REQUIRE(tc_popcount(value) == __builtin_popcount(byte));
    REQUIRE(tc_popcount(byte) == __builtin_popcount(byte));
    for (int n = -128; n < 128; n++) {
      const auto count = static_cast<signed char>(n);
      const bool out = n < 0 || n >= 8;
      REQUIRE(tc_shl(value, count) == (out ? 0 : static_cast<signed char>(a * (1 << n))));
      REQUIRE(tc_shr(value, count) == (out ? (a < 0 ? -1 : 0) : a >> n));
    }
  }
}

TEST_CASE("floor division and remainder of every pair of bytes", "[prelude]") {
  for (int a = -128; a < 128; a++) {
    for (int b = -128; b < 128; b++) {
      if (b == 0) continue;
      const int quotient = static_cast<int>(std::floor(double(a) / b));
      const auto x = static_cast<signed char>(a), y = static_cast<signed char>(b);
      REQUIRE(tc_floor_divide(x, y) == static_cast<signed char>(quotient));
      REQUIRE(tc_remainder(x, y) == a - b * quotient);
    }
  }
  CHECK(error_word == 0);
  CHECK(tc_floor_divide(7, 0) == 0);
  CHECK(tc_remainder(7u, 0u) == 0);
  CHECK(error_word == 2);
  error_word = 0;
}
