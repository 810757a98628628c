// The accuracy that the map promises, sampled; `make build/ulp && build/ulp 1` tries every f32
// (README.md here keeps what it found).
#include "tests/base/ulp.h"

#include <set>
#include <string>

#include "tests/catch.h"
#include "tiny_compile/graph/op.h"

using namespace tiny_compile;

namespace {

constexpr unsigned long long kSamples = 60000;

// One rounding costs half an ulp; the rest is left to the function.
void check_halves(float (*function)(float), double (*exact)(double)) {
  using namespace prelude;
  ulp::Worst f16, bf16;
  for (unsigned bits = 0; bits < 65536; bits++) {
    const unsigned short half = static_cast<unsigned short>(bits);
    const float x = tc_to_f32(tc_f16{half}), y = tc_to_f32(tc_bf16{half});
    const float fx = tc_to_f32(tc_to_f16(function(x))), fy = tc_to_f32(tc_to_bf16(function(y)));
    f16.add(ulp::error_of(fx, exact(x), ulp::kF16), x);
    bf16.add(ulp::error_of(fy, exact(y), ulp::kBf16), y);
  }
  CAPTURE(f16.x, bf16.x);
  CHECK(f16.error <= 0.8);
  CHECK(bf16.error <= 0.8);
}

}  // namespace

TEST_CASE("functions of f32 stay within their bounds", "[math]") {
  const auto pattern = [](unsigned long long i) {
    return prelude::tc_from_bits(static_cast<unsigned>(i * 71583u));
  };
#define X(name, bound32, bound64)                                                         \
  {                                                                                       \
    const auto f = [](float x) { return prelude::tc_##name(x); };                         \
    const auto exact = ulp::Reference<double>::name;                                      \
    ulp::Worst worst = ulp::worst_of<float>(f, exact, ulp::argument<float>, 0, kSamples); \
    const ulp::Worst even = ulp::worst_of<float>(f, exact, pattern, 0, kSamples);         \
    worst.add(even.error, even.x);                                                        \
    INFO(#name " of " << worst.x);                                                        \
    CHECK(worst.error <= bound32);                                                        \
  }
  TC_ULP_FUNCTIONS(X)
#undef X
}

TEST_CASE("every op of one real number is measured, or only rounds", "[math]") {
  std::set<std::string> names = {"floor", "ceil", "round", "trunc"};
#define X(name, ...) names.insert(#name);
  TC_ULP_FUNCTIONS(X)
#undef X
  enum Operands { Number, Float, Any, Bits, Integer, Where };
#define X(name, arity, operands, ...) \
  if (arity == 1 && operands == Float) CHECK(names.contains(#name));
  TC_POINTWISE_OPS(X)
#undef X
}

TEST_CASE("functions of f64 stay within their bounds", "[math]") {
  if (std::numeric_limits<long double>::digits < 64) SKIP("long double is no better than f64");
#define X(name, bound32, bound64)                                                   \
  {                                                                                 \
    const auto f = [](double x) { return prelude::tc_##name(x); };                  \
    const auto exact = ulp::Reference<long double>::name;                           \
    const ulp::Worst worst =                                                        \
        ulp::worst_of<double>(f, exact, ulp::argument<double>, 0, kSamples, #name); \
    INFO(#name " of " << worst.x);                                                  \
    CHECK(worst.error <= bound64);                                                  \
  }
  TC_ULP_FUNCTIONS(X)
#undef X
}

TEST_CASE("functions of two numbers stay within their bounds, special cases included",
          "[math]"){
#define X(name, bound32, bound64)                                                           \
  {                                                                                         \
    const auto f = [](auto x, auto y) { return prelude::tc_##name(x, y); };                 \
    const ulp::Worst f32 = ulp::worst_of_two<float>(                                        \
        f, ulp::Reference<double>::name, ulp::name##_arguments<float>, 0, kSamples, #name); \
    const ulp::Worst f64 =                                                                  \
        ulp::worst_of_two<double>(f, ulp::Reference<long double>::name,                     \
                                  ulp::name##_arguments<double>, 0, kSamples, #name);       \
    INFO(#name " of " << f32.x << ", " << f32.y << " and " << f64.x << ", " << f64.y);      \
    CHECK(f32.error <= bound32);                                                            \
    CHECK(f64.error <= bound64);                                                            \
  }
    TC_ULP_FUNCTIONS_OF_TWO(X)
#undef X
}

TEST_CASE("functions of every f16 and bf16 are within an ulp", "[math]") {
  using namespace prelude;
  check_halves(tc_gelu_half, ulp::Reference<double>::gelu);
  check_halves(tc_silu_half, ulp::Reference<double>::silu);
  check_halves(tc_sigmoid_half, ulp::Reference<double>::sigmoid);
  check_halves(tc_tanh_half, ulp::Reference<double>::tanh);
  check_halves(tc_softplus_half, ulp::Reference<double>::softplus);
  check_halves(tc_exp_half, ulp::Reference<double>::exp);
  check_halves(tc_log_half, ulp::Reference<double>::log);
  check_halves(tc_log1p_half, ulp::Reference<double>::log1p);
  check_halves(tc_sin_half, ulp::Reference<double>::sin);
  check_halves(tc_cos_half, ulp::Reference<double>::cos);
  check_halves(tc_erf_half, ulp::Reference<double>::erf);
}
