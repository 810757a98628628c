// Running results and scatters by PyTorch's names: dtypes, places, and what is refused.
#include "tests/trace/agree.h"
#include "tiny_compile/trace/functions.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

void check_fails(const std::function<void()>& action, const std::string& says) {
  const std::string message = message_of(action);
  INFO(message);
  CHECK_THAT(message, ContainsSubstring("scans_test.cpp:"));
  CHECK_THAT(message, ContainsSubstring(says));
}

}  // namespace

TEST_CASE("cummax and cummin give values and places, cumprod widens integers", "[scan]") {
  const auto y = agreed(
      [](Tensor x) {
        const auto [most, at] = cummax(x, -1);
        const auto [least, place] = cummin(x < 2, 1);
        return std::vector<Tensor>{most, at, least, place, cumprod(x.to(int8), 0)};
      },
      tensor({1., 3., 3., 2., 0., 5.}).reshape({2, 3}));
  check_near(y[0], {2, 3}, {1, 3, 3, 2, 2, 5});
  check_is(y[1], int64, {2, 3}, {0, 1, 2, 0, 0, 2});
  check_is(y[2], boolean, {2, 3}, {1, 0, 0, 0, 0, 0});
  check_is(y[3], int64, {2, 3}, {0, 1, 2, 0, 0, 2});
  check_is(y[4], int64, {2, 3}, {1, 3, 3, 2, 0, 15});
}

TEST_CASE("logcumsumexp and logaddexp do not overflow", "[scan]") {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{logcumsumexp(x, 0), logaddexp(x, x)};
      },
      tensor({1000., 1000., 0.}));
  check_near(y[0], {3}, {1000, 1000.6931471805599, 1000.6931471805599}, 1e-7);
  check_near(y[1], {3}, {1000.6931471805599, 1000.6931471805599, 0.6931471805599453}, 1e-7);
}

TEST_CASE("scatter sets, and scatter_reduce takes PyTorch's names", "[scan]") {
  const auto y = agreed(
      [](Tensor x, Tensor index) {
        const Tensor source = tensor({5., 6., 7., 8.});
        std::vector<Tensor> all = {scatter(x, 0, index, source), scatter(x, 0, index, -1)};
        for (const char* name : {"sum", "prod", "amax", "amin"})
          all.push_back(scatter_reduce(x, 0, index, source, name));
        return all;
      },
      tensor({1., 10., 2.}), tensor({0, 2, 0, 1}));
  check_near(y[0], {3}, {7, 8, 6});
  check_near(y[1], {3}, {-1, -1, -1});
  check_near(y[2], {3}, {13, 18, 8});
  check_near(y[3], {3}, {35, 80, 12});
  check_near(y[4], {3}, {7, 10, 6});
  check_near(y[5], {3}, {1, 8, 2});
}

TEST_CASE("scans and scatters of what they do not take are refused", "[scan]") {
  const Tensor x = tensor({1., 2.}), index = tensor({0, 1});
  check_fails([&] { logcumsumexp(index, 0); }, "wants floats, not i64");
  check_fails([&] { cummax(x, 1); }, "axis 1");
  check_fails([&] { scatter_reduce(x, 0, index, x, "mean"); }, "no reduction is called 'mean'");
  check_fails([&] { scatter(x, 0, x, x); }, "integers");
}

TEST_CASE("a later chunk's updates are added up apart", "[scan]") {
  std::vector<float> updates(1026);
  updates[1024] = updates[1025] = 1;
  const auto y = agreed(
      [](Tensor x, Tensor index, Tensor source) {
        return std::vector<Tensor>{scatter_add(x, 0, index, source)};
      },
      tensor({16777216.f, 3.f}), zeros({1026}).to(int64), from_vector(updates));
  check_near(y[0], {2}, {16777218, 3}, 0);
}

TEST_CASE("thousands of updates in chunks have the interpreter's bits", "[scan]") {
  const auto both = [](Tensor x, Tensor index, Tensor source) {
    return std::vector<Tensor>{
        scatter_add(x, 0, index, source), scatter_reduce(x, 0, index, source, "prod"),
        scatter_reduce(x, 0, index, source, "amax"), scatter(x, 0, index, source)};
  };
  manual_seed(5);
  for (int64_t targets : {1, 10, 3000}) {
    const Tensor rows = (rand({4100}) * static_cast<double>(targets)).to(int64);
    agreed(both, randn({targets}), rows, randn({4100}));
    agreed(both, randn({targets, 70}), rows.unsqueeze(1).expand({4100, 70}), randn({4100, 70}));
  }
  const Tensor apart = (rand({2100, 9}) * 7.0).to(int64);
  agreed(both, randn({7, 9}), apart, randn({2100, 9}));
  agreed(both, randn({7, 9}).to(bfloat16), apart, randn({2100, 9}).to(bfloat16));
}
