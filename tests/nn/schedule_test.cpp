// Learning rates, worked out by hand.
#include "tiny_compile/nn/schedule.h"

#include <cmath>

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::nn;

TEST_CASE("a rate warms up, falls as a cosine, and stays", "[schedule]") {
  const Rate rate = warmup_cosine(8, 4, 12, 1);
  REQUIRE(rate(0) == 2);
  REQUIRE(rate(3) == 8);
  REQUIRE(rate(4) == 8);
  REQUIRE(rate(6) == Catch::Approx(1 + 7 * 0.5 * (1 + std::sqrt(0.5))));
  REQUIRE(rate(8) == Catch::Approx(4.5));
  REQUIRE(rate(12) == 1);
  REQUIRE(rate(1000) == 1);
  REQUIRE(warmup_cosine(8, 0, 0)(0) == 0);
}

TEST_CASE("constant, linear and step rates", "[schedule]") {
  REQUIRE(constant_rate(0.5)(77) == 0.5);
  const Rate line = linear_rate(1, 0, 4);
  REQUIRE(line(0) == 1);
  REQUIRE(line(1) == 0.75);
  REQUIRE(line(9) == 0);
  const Rate steps = step_rate(1, 10, 0.5);
  REQUIRE(steps(9) == 1);
  REQUIRE(steps(10) == 0.5);
  REQUIRE(steps(25) == 0.25);
}

TEST_CASE("a schedule refuses lengths that cannot be", "[schedule]") {
  REQUIRE_THROWS_WITH(warmup_cosine(1, 10, 5),
                      Catch::Matchers::ContainsSubstring("does not fit into 5"));
  REQUIRE_THROWS_WITH(step_rate(1, 0), Catch::Matchers::ContainsSubstring("at least 1"));
  REQUIRE_THROWS_WITH(linear_rate(1, 0, -1), Catch::Matchers::ContainsSubstring("-1 steps"));
}
