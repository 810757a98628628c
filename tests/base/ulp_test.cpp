// The accuracy that the map promises, sampled; `make build/ulp && build/ulp 1` tries every f32.
#include "tests/base/ulp.h"

#include <string>

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

constexpr unsigned long long kSamples = 60000;

template <typename F>
void check_halves(F rounded, ulp::Format format) {
  ulp::Worst worst;
  for (unsigned bits = 0; bits < 65536; bits++) {
    const auto [x, value] = rounded(static_cast<unsigned short>(bits));
    worst.add(ulp::error_of(value, ulp::Reference<double>::gelu(x), format), x);
  }
  CAPTURE(worst.x);
  CHECK(worst.error <= 1);
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

TEST_CASE("functions of f64 stay within their bounds", "[math]") {
  if (std::numeric_limits<long double>::digits < 64) SKIP("long double is no better than f64");
#define X(name, bound32, bound64)                                            \
  {                                                                          \
    const auto f = [](double x) { return prelude::tc_##name(x); };           \
    const auto exact = ulp::Reference<long double>::name;                    \
    const ulp::Worst worst =                                                 \
        ulp::worst_of<double>(f, exact, ulp::argument<double>, 0, kSamples); \
    INFO(#name " of " << worst.x);                                           \
    CHECK(worst.error <= bound64);                                           \
  }
  TC_ULP_FUNCTIONS(X)
#undef X
}

TEST_CASE("pow stays within its bound, special cases included", "[math]") {
  const ulp::Worst f32 = ulp::worst_of_pow<float, double>(0, 2 * kSamples);
  const ulp::Worst f64 = ulp::worst_of_pow<double, long double>(0, 2 * kSamples);
  CAPTURE(f32.x, f32.y, f64.x, f64.y);
  CHECK(f32.error <= 2);
  CHECK(f64.error <= 4);
}

TEST_CASE("gelu of every f16 and bf16 is within one ulp", "[math]") {
  using namespace prelude;
  check_halves(
      [](unsigned short bits) {
        const float x = tc_to_f32(tc_f16{bits});
        return std::pair<double, double>(x, tc_to_f32(tc_to_f16(tc_gelu_half(x))));
      },
      ulp::kF16);
  check_halves(
      [](unsigned short bits) {
        const float x = tc_to_f32(tc_bf16{bits});
        return std::pair<double, double>(x, tc_to_f32(tc_to_bf16(tc_gelu_half(x))));
      },
      ulp::kBf16);
}
