// Special functions and bit casts as a user calls them: compiled and eager agree, and both with values
// worked out by hand.
#include "tests/trace/agree.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("polygamma is the derivative of digamma of that order", "[special]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x) {
        return std::vector{polygamma(0, x), polygamma(1, x), polygamma(2, x), polygamma(40, x)};
      },
      tensor({1.0, 0.5, 10.0, -0.5}));
  const double pi = 3.141592653589793, zeta3 = 1.2020569031595942;
  check_near(
      y[0], {4},
      {-0.5772156649015329, -1.9635100260214235, 2.251752589066721, 0.03648997397857652});
  check_near(y[1], {4}, {pi * pi / 6, pi * pi / 2, 0.10516633568168575, pi * pi / 2 + 4},
             1e-14);
  check_near(y[2], {4}, {-2 * zeta3, -14 * zeta3, -0.011049834970802067, -14 * zeta3 + 16},
             1e-14);
  CHECK(y[3].to_vector<double>()[2] < 0);
}

TEST_CASE("polygamma of a high order does not overflow where its value does not", "[special]") {
  const Tensor y = polygamma(40, tensor({10.f}));  // 40! alone is beyond f32
  CHECK(y.dtype() == float32);
  CHECK(std::abs(y.item<double>() / -8.32784872e6 - 1) < 1e-6);
}

TEST_CASE("a negative order of polygamma is an error at the user's line", "[special]") {
  CHECK_THAT(message_of([] { polygamma(-1, ones({2})); }),
             ContainsSubstring("special_test.cpp") && ContainsSubstring("order -1"));
}

TEST_CASE("special functions take integers as floats", "[special]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x) {
        return std::vector{lgamma(x), log2(x), exp2(x), atan2(x, 1), zeta(x + 1, 1)};
      },
      tensor({1, 2, 4}));
  CHECK(y[0].dtype() == float32);
  check_near(y[0], {3}, {0, 0, 1.791759469228055});
  check_near(y[1], {3}, {0, 1, 2}, 0);
  check_near(y[2], {3}, {2, 4, 16}, 0);
  check_near(y[3], {3}, {0.7853981633974483, 1.1071487177940904, 1.3258176636680326});
  check_near(y[4], {3}, {1.6449340668482264, 1.2020569031595942, 1.0369277551433699});
}

TEST_CASE("a view as another dtype of the same size reads the same bits", "[special]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x) {
        const Tensor bits = x.view(int32);
        return std::vector{bits, (bits ^ (1 << 31)).view(float32), bitcast(x, uint32) >> 31};
      },
      tensor({1.f, -2.5f, 0.f}));
  check_is(y[0], int32, {3}, {0x3f800000, static_cast<int>(0xc0200000u), 0});
  check_is(y[1], float32, {3}, {-1, 2.5, -0.0});
  CHECK(std::signbit(y[1].to_vector<double>()[2]));
  check_is(y[2], uint32, {3}, {0, 1, 0});
}

TEST_CASE("a bit cast to another size is an error at the user's line", "[special]") {
  CHECK_THAT(message_of([] { ones({2}).view(int64); }),
             ContainsSubstring("special_test.cpp") && ContainsSubstring("8 bytes"));
}
