// What somebody who knows PyTorch writes first: values worked out by hand, compiled and eager alike.
#include <cstdio>

#include "tests/trace/agree.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Tensor matrix = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});

}  // namespace

TEST_CASE("+= and its kin rename the tensor; other handles keep the old one", "[names]") {
  const auto f = [](Tensor x) {
    const Tensor old = x;
    x += 1;
    x *= x;
    x -= old;
    x /= 2.0;
    return std::vector{x, old};
  };
  const std::vector<Tensor> y = agreed(f, tensor({1.f, 2.f, 3.f}));
  check_is(y[0], float32, {3}, {1.5, 3.5, 6.5});
  check_is(y[1], float32, {3}, {1, 2, 3});
}

TEST_CASE("+= keeps dtype and shape, or is an error at the user's line", "[names]") {
  Tensor halves = ones({2}, float16);
  halves += tensor({0.5f, 1.f});
  check_is(halves, float16, {2}, {1.5, 2});
  Tensor whole = tensor({1, 2});
  CHECK_THAT(message_of([&] { whole += 0.5; }),
             ContainsSubstring("pytorch_names_test.cpp") && ContainsSubstring("f32"));
  CHECK_THAT(message_of([&] { whole /= 2; }), ContainsSubstring("does not fit into i64"));
  CHECK_THAT(message_of([&] { whole += ones({3, 2}, int64); }), ContainsSubstring("[3,2]"));
  check_is(whole, int64, {2}, {1, 2});
  Tensor none;
  CHECK_THAT(message_of([&] { none += 1; }), ContainsSubstring("undefined"));
}

TEST_CASE("!, && and || are logic of every element", "[names]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x, Tensor z) {
        return std::vector{!x, x && z > 1, x || z > 1, !(x > 0) && z};
      },
      tensor({0, 1, 2, 0}), tensor({2.f, 2.f, 1.f, 0.f}));
  check_is(y[0], boolean, {4}, {1, 0, 0, 1});
  check_is(y[1], boolean, {4}, {0, 1, 0, 0});
  check_is(y[2], boolean, {4}, {1, 1, 1, 0});
  check_is(y[3], boolean, {4}, {1, 0, 0, 0});
  if (!(tensor({1}) == 2) && ones({1}) == 1.0) SUCCEED("one element still is a condition");
  CHECK_THAT(message_of([] { ones({2}) && ones({3}); }),
             ContainsSubstring("pytorch_names_test.cpp"));
}

TEST_CASE("one axis needs no braces", "[names]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x) {
        return std::vector{x.max(1),       x.min(0),          x.sum(-1),
                           x.prod(1),      mean(x, -1),       sum(x, 0),
                           x.var(1, 0),    x.std(1, 0, true), any(x > 4, 1),
                           (x > 1).all(0), x.argmax(1),       logsumexp(x - x, 1),
                           max(x, {0, 1}), x.flip(1),         sum_exp(x - x, -1, true)};
      },
      matrix);
  const double variance = 2. / 3;
  check_is(y[0], float32, {2}, {3, 6});
  check_is(y[1], float32, {3}, {1, 2, 3});
  check_is(y[2], float32, {2}, {6, 15});
  check_is(y[3], float32, {2}, {6, 120});
  check_is(y[4], float32, {2}, {2, 5});
  check_is(y[5], float32, {3}, {5, 7, 9});
  check_near(y[6], {2}, {variance, variance});
  check_near(y[7], {2, 1}, {std::sqrt(variance), std::sqrt(variance)});
  check_is(y[8], boolean, {2}, {0, 1});
  check_is(y[9], boolean, {3}, {0, 1, 1});
  check_is(y[10], int64, {2}, {2, 2});
  check_near(y[11], {2}, {std::log(3), std::log(3)});
  check_is(y[12], float32, {}, {6});
  check_is(y[13], float32, {2, 3}, {3, 2, 1, 6, 5, 4});
  check_is(y[14], float32, {2, 1}, {3, 3});
  CHECK_THAT(message_of([] { matrix.max(2); }),
             ContainsSubstring("pytorch_names_test.cpp") && ContainsSubstring("axis 2"));
}

TEST_CASE("isfinite, isinf and isnan tell infinities and NaN", "[names]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x, Tensor i) {
        return std::vector{isfinite(x), isinf(x), isnan(x), isfinite(i)};
      },
      tensor({0., kInfinity, -kInfinity, kNan, 1e308}), tensor({1, -5}));
  check_is(y[0], boolean, {5}, {1, 0, 0, 0, 1});
  check_is(y[1], boolean, {5}, {0, 1, 1, 0, 0});
  check_is(y[2], boolean, {5}, {0, 0, 0, 1, 0});
  check_is(y[3], boolean, {2}, {1, 1});
}

TEST_CASE("norms of every order", "[names]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x) {
        return std::vector{norm(x),
                           x.norm(1),
                           norm(x, kInfinity, 1),
                           norm(x, -kInfinity, 0),
                           norm(x, 0, -1, true),
                           norm(x, 3.)};
      },
      tensor({{3.f, -4.f}, {0.f, 12.f}}));
  check_is(y[0], float32, {}, {13});
  check_is(y[1], float32, {}, {19});
  check_is(y[2], float32, {2}, {4, 12});
  check_is(y[3], float32, {2}, {0, 4});
  check_is(y[4], float32, {2, 1}, {2, 1});
  check_near(y[5], {}, {std::cbrt(27 + 64 + 1728.)});
  CHECK_THAT(message_of([] {
               norm(tensor({1, 2}));
             }),
             ContainsSubstring("pytorch_names_test.cpp") && ContainsSubstring("floats"));
}

TEST_CASE("cat, full_like, leaky_relu, outer and roll", "[names]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x) {
        return std::vector{cat({x, x}, 1),        full_like(x, 7),          leaky_relu(x - 3),
                           leaky_relu(x - 3, .5), outer(x[0], x[1]),        roll(x, 1),
                           roll(x, 1, 1),         roll(x, {1, -1}, {0, 1}), roll(x, -7)};
      },
      matrix);
  check_is(y[0], float32, {2, 6}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  check_is(y[1], float32, {2, 3}, {7, 7, 7, 7, 7, 7});
  check_near(y[2], {2, 3}, {-.02, -.01, 0, 1, 2, 3});
  check_is(y[3], float32, {2, 3}, {-1, -.5, 0, 1, 2, 3});
  check_is(y[4], float32, {3, 3}, {4, 5, 6, 8, 10, 12, 12, 15, 18});
  check_is(y[5], float32, {2, 3}, {6, 1, 2, 3, 4, 5});
  check_is(y[6], float32, {2, 3}, {3, 1, 2, 6, 4, 5});
  check_is(y[7], float32, {2, 3}, {5, 6, 4, 2, 3, 1});
  check_is(y[8], float32, {2, 3}, {2, 3, 4, 5, 6, 1});
  CHECK_THAT(message_of([] { outer(matrix, matrix); }), ContainsSubstring("two vectors"));
  CHECK_THAT(
      message_of([] {
        roll(matrix, {1, 2}, 0);
      }),
      ContainsSubstring("pytorch_names_test.cpp") && ContainsSubstring("2 shifts for 1"));
}

TEST_CASE("rand_like and randn_like draw in the tensor's shape and dtype", "[names]") {
  const std::vector<Tensor> y = agreed(
      [](Tensor x) {
        return std::vector{rand_like(x), randn_like(x)};
      },
      ones({3, 2}, float64));
  CHECK(y[0].shape() == Sizes{3, 2});
  CHECK(y[1].dtype() == float64);
  CHECK_THAT(message_of([] { rand_like(tensor({1})); }), ContainsSubstring("no float"));
}

TEST_CASE("max_pool2d takes the greatest of each window, padding aside", "[names]") {
  const Tensor x = (arange(16).to(float32) - 20).reshape({1, 1, 4, 4});  // -20 ... -5
  const std::vector<Tensor> y = agreed(
      [](Tensor t) {
        return std::vector{max_pool2d(t, 2), max_pool2d(t, 3, 1), max_pool2d(t, 3, 2, 1),
                           max_pool2d(t, {1, 4}), max_pool2d(t[0], {3, 2}, {1, 2})};
      },
      x);
  check_is(y[0], float32, {1, 1, 2, 2}, {-15, -13, -7, -5});
  check_is(y[1], float32, {1, 1, 2, 2}, {-10, -9, -6, -5});
  check_is(y[2], float32, {1, 1, 2, 2}, {-15, -13, -7, -5});
  check_is(y[3], float32, {1, 1, 4, 1}, {-17, -13, -9, -5});
  check_is(y[4], float32, {1, 2, 2}, {-11, -9, -7, -5});
}

TEST_CASE("avg_pool2d counts the padding, or does not", "[names]") {
  const Tensor x = arange(9).to(float32).reshape({1, 1, 3, 3});
  const std::vector<Tensor> y = agreed(
      [](Tensor t) {
        return std::vector{avg_pool2d(t, 2), avg_pool2d(t, 2, 1), avg_pool2d(t, 2, 2, 1),
                           avg_pool2d(t, 2, 2, 1, false), avg_pool2d(t.to(float16), {2, 3})};
      },
      x);
  check_is(y[0], float32, {1, 1, 1, 1}, {2});
  check_is(y[1], float32, {1, 1, 2, 2}, {2, 3, 5, 6});
  check_is(y[2], float32, {1, 1, 2, 2}, {0, 3. / 4, 9. / 4, 24. / 4});
  check_is(y[3], float32, {1, 1, 2, 2}, {0, 1.5, 4.5, 6});
  check_is(y[4], float16, {1, 1, 1, 1}, {2.5});
}

TEST_CASE("a pooling that does not fit is an error at the user's line", "[names]") {
  const Tensor x = ones({1, 1, 4, 4});
  for (const auto& [action, why] : std::vector<std::pair<std::function<void()>, std::string>>{
           {[&] { max_pool2d(x, 5); }, "larger than the padded image"},
           {[&] { max_pool2d(x, 2, 2, 2); }, "half the kernel"},
           {[&] { avg_pool2d(x, 0); }, "positive"},
           {[&] {
              avg_pool2d(ones({4, 4}), 2);
            },
            "[N,C,H,W]"},
           {[&] { max_pool2d(x.to(int64), 2); }, "floats"}}) {
    CHECK_THAT(message_of(action),
               ContainsSubstring("pytorch_names_test.cpp") && ContainsSubstring(why));
  }
}

TEST_CASE("nested braces make matrices and more, rows of one length", "[names]") {
  check_is(tensor({{1, 2}, {3, 4}, {5, 6}}), int64, {3, 2}, {1, 2, 3, 4, 5, 6});
  check_is(tensor({{1.5}, {2.5}}), float64, {2, 1}, {1.5, 2.5});
  check_is(tensor({{{1.f, 2.f}}, {{3.f, 4.f}}}), float32, {2, 1, 2}, {1, 2, 3, 4});
  check_is(tensor({{true, false}}), boolean, {1, 2}, {1, 0});
  CHECK_THAT(message_of([] {
               tensor({{1, 2}, {3}});
             }),
             ContainsSubstring("pytorch_names_test.cpp") && ContainsSubstring("row 1 [1]"));
}

TEST_CASE("from_vector takes its shape in braces", "[names]") {
  check_is(from_vector(std::vector{1.f, 2.f}, {2, 1}), float32, {2, 1}, {1, 2});
  CHECK_THAT(message_of([] {
               from_vector(std::vector{1.f, 2.f}, {3, 1});
             }),
             ContainsSubstring("pytorch_names_test.cpp") && ContainsSubstring("[3,1]"));
}

TEST_CASE("the one header brings .npy files", "[names]") {
  const Scratch folder;
  save_npy(folder.path("m.npy"), matrix);
  CHECK(same_bits(load_npy(folder.path("m.npy")), matrix));
}
