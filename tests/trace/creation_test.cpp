#include "tiny_compile/trace/creation.h"

#include <set>

#include "tests/trace/agree.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Statistics {
  double mean, variance, least, most;
};

Statistics statistics_of(const Tensor& tensor) {
  const Tensor x = tensor.to(float64);
  return {mean(x).item<double>(), var(x).item<double>(), min(x).item<double>(),
          max(x).item<double>()};
}

void check_fails(const std::function<void()>& action, const std::string& says) {
  const std::string message = message_of(action);
  INFO(message);
  CHECK_THAT(message, ContainsSubstring("creation_test.cpp:"));
  CHECK_THAT(message, ContainsSubstring(says));
}

}  // namespace

TEST_CASE("zeros, ones, full and their likes", "[creation]") {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{
            zeros({2, 3}),       ones({3}, int8),       full({2}, 1.5, bfloat16),
            full({}, -7, int64), full({2}, 1, boolean), zeros({0, 4}),
            zeros_like(x),       ones_like(x),          x * 0 + full({2}, 2.5)};
      },
      tensor({3, 4}).to(int32));
  check_is(y[0], float32, {2, 3}, Values(6, 0));
  check_is(y[1], int8, {3}, {1, 1, 1});
  check_is(y[2], bfloat16, {2}, {1.5, 1.5});
  check_is(y[3], int64, {}, {-7});
  check_is(y[4], boolean, {2}, {1, 1});
  check_is(y[5], float32, {0, 4}, {});
  check_is(y[6], int32, {2}, {0, 0});
  check_is(y[7], int32, {2}, {1, 1});
  check_is(y[8], float32, {2}, {2.5, 2.5});
}

TEST_CASE("arange, linspace and eye", "[creation]") {
  const auto y = agreed([] {
    return std::vector<Tensor>{
        arange(4),         arange(2, 9, 3),    arange(5, 0, -2),  arange(3, 3), arange(3, 8, 5),
        linspace(0, 1, 5), linspace(3, -3, 4), linspace(2, 9, 1), eye(3),       eye(2, int64)};
  });
  check_is(y[0], int64, {4}, {0, 1, 2, 3});
  check_is(y[1], int64, {3}, {2, 5, 8});
  check_is(y[2], int64, {3}, {5, 3, 1});
  check_is(y[3], int64, {0}, {});
  check_is(y[4], int64, {1}, {3});
  check_is(y[5], float32, {5}, {0, .25, .5, .75, 1});
  check_is(y[6], float32, {4}, {3, 1, -1, -3});
  check_is(y[7], float32, {1}, {2});
  check_is(y[8], float32, {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  check_is(y[9], int64, {2, 2}, {1, 0, 0, 1});
  check_fails([] { arange(0, 3, 0); }, "step");
}

TEST_CASE("lists become tensors of their kind", "[creation]") {
  check_is(tensor({1.5f, 2.f}), float32, {2}, {1.5, 2});
  check_is(tensor({1.5, 2.}), float64, {2}, {1.5, 2});
  check_is(tensor({1, 2}), int64, {2}, {1, 2});
  check_is(tensor({true, false}), boolean, {2}, {1, 0});
  check_is(from_vector<float>({1, 2, 3, 4}, Sizes{2, 2}), float32, {2, 2}, {1, 2, 3, 4});
  CHECK(message_of([] { from_vector<float>({1, 2, 3}, Sizes{2, 2}); }) != "no error");
}

TEST_CASE("the seed decides the draws, eagerly and compiled", "[creation]") {
  const auto first = agreed([] {
    return std::vector<Tensor>{rand({5}), randn({3, 3}),        randint(0, 10, {7}),
                               rand({5}), randn({4}, bfloat16), rand({3}, float64)};
  });
  CHECK_FALSE(same_bits(first[0], first[3]));
  CHECK(first[4].dtype() == bfloat16);
  CHECK(first[5].dtype() == float64);
  manual_seed(11);
  CHECK(same_bits(rand({5}), first[0]));
  manual_seed(12);
  CHECK_FALSE(same_bits(rand({5}), first[0]));
}

TEST_CASE("each call draws anew, where the eager draws would go on", "[creation]") {
  const Scratch cache;
  const Setting setting("TC_CACHE_DIR", cache.path("cache"));
  const auto draws = [](Tensor x) {  // named: the order of a * b's operands is unspecified
    const Tensor uniform = rand({8});
    return x + uniform * randn({8});
  };
  const auto draw = compile(draws);
  const Tensor zero = zeros({8});
  manual_seed(5);
  const Tensor a = draw(zero), b = draw(zero), after = rand({8});
  manual_seed(5);
  CHECK_FALSE(same_bits(a, b));
  CHECK(same_bits(a, draws(zero)));
  CHECK(same_bits(b, draws(zero)));
  CHECK(same_bits(after, rand({8})));
}

TEST_CASE("random numbers have the moments of their distributions", "[creation]") {
  manual_seed(1);
  const Statistics uniform = statistics_of(rand({100000}));
  CHECK(std::abs(uniform.mean - .5) < .005);
  CHECK(std::abs(uniform.variance - 1. / 12) < .002);
  CHECK(uniform.least >= 0);
  CHECK(uniform.most < 1);
  const Tensor normals = randn({100000});
  const Statistics normal = statistics_of(normals);
  CHECK(std::abs(normal.mean) < .015);
  CHECK(std::abs(normal.variance - 1) < .025);
  CHECK(normal.least > -7);
  CHECK(normal.most < 7);
  CHECK(std::abs(mean((abs(normals) < 1).to(float64)).item<double>() - .6827) < .01);
  const Tensor numbers = randint(-3, 4, {70000});
  CHECK(numbers.dtype() == int64);
  for (int64_t value = -3; value < 4; value++)
    CHECK(std::abs(sum(numbers == value).item<int64_t>() - 10000) < 500);
}

TEST_CASE("neighbouring seeds and draws are uncorrelated", "[creation]") {
  std::vector<Tensor> draws;
  for (const uint64_t seed : {0, 1, 2}) {
    manual_seed(seed);
    draws.push_back(rand({20000}) - .5);
    draws.push_back(rand({20000}) - .5);
  }
  for (size_t i = 0; i < draws.size(); i++) {
    for (size_t j = 0; j < i; j++)
      CHECK(std::abs(mean(draws[i] * draws[j]).item<float>() * 12) < .04);
    const Tensor x = draws[i];
    CHECK(std::abs(mean(x.slice(0, 1) * x.slice(0, 0, -1)).item<float>() * 12) < .04);
  }
}

TEST_CASE("shapes, dtypes and ranges that cannot be are refused", "[creation]") {
  check_fails([] { rand({2}, int32); }, "randint");
  check_fails([] { randn({2}, boolean); }, "randn");
  check_fails([] { randint(3, 3, {2}); }, "empty");
  check_fails([] { randint(0, int64_t{1} << 40, {2}); }, "randint");
  check_fails([] { zeros({2, -1}); }, "-1");
  check_fails([] { ones({int64_t{1} << 40, int64_t{1} << 40}); }, "");
  check_fails([] { eye(-2); }, "-2");
  check_fails([] { linspace(0, 1, -1); }, "-1");
}
