// Functions that say what their gradient is: tc::custom_vjp, tc::stop_gradient; and tc::hessian.
#include "tests/catch.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

using Doubles = std::vector<double>;

struct Pair {
  Tensor first, second;
};

const Tensor kX = from_vector<double>({2, -3, 0.5});

auto clipped() {
  return custom_vjp([](const Tensor& x) { return x * 1.0; },
                    [](const Tensor&, const Tensor&, const Tensor& g) {
                      return std::tuple(clamp(g, -1, 1));
                    });
}

}  // namespace

TEST_CASE("a function has the gradient that its rule says", "[custom_vjp]") {
  const auto loss = [](const Tensor& x) { return (clipped()(x) * x.t()).sum() * 10.0; };
  REQUIRE(same_bits(clipped()(kX), kX));
  const auto steep = [](const Tensor& x) { return (clipped()(x) * 10.0).sum(); };
  REQUIRE(grad(steep)(kX).to_vector<double>() == Doubles{1, 1, 1});
  const auto f = compile([=](const Tensor& x) { return grad(steep)(x); });
  REQUIRE(f(kX).to_vector<double>() == Doubles{1, 1, 1});
  REQUIRE(grad(loss)(kX).to_vector<double>() == Doubles{21, -31, 6});
}

TEST_CASE("a rule is given arguments, result and cotangent in their structures",
          "[custom_vjp]") {
  const auto both = custom_vjp(
      [](const Pair& p, const Tensor& places) {
        return Pair{p.first * p.second, places + 1};
      },
      [](const Pair& p, const Tensor& places, const Pair& result, const Pair& cotangent) {
        const Tensor g = cotangent.first * result.first;
        return std::tuple(Pair{g * p.second, cotangent.second.to(DType::f64)}, places);
      },
      "both");
  const Tensor places = from_vector<int64_t>({1, 2, 3}), y = from_vector<double>({4, 5, 6});
  const auto loss = [&](const Pair& p) { return both(p, places).first.sum(); };
  const auto f = compile([&](const Pair& p, const Tensor& at) {
    return grad([&](const Pair& q) { return both(q, at).first.sum(); })(p);
  });
  const Pair made = f(Pair{kX, y}, places), at_once = grad(loss)(Pair{kX, y});
  REQUIRE(same_bits(made.first, at_once.first));
  REQUIRE(made.first.to_vector<double>() == Doubles{2 * 4 * 4., -3 * 5 * 5., 0.5 * 6 * 6.});
  REQUIRE(made.second.to_vector<double>() == Doubles{0, 0, 0});
}

TEST_CASE("the second derivative is that of the rule", "[custom_vjp]") {
  const auto odd =
      custom_vjp([](const Tensor& x) { return x.sum(); },
                 [](const Tensor& x, const Tensor&, const Tensor& g) { return x * x * x * g; });
  const auto slopes = [&](const Tensor& x) { return grad(odd)(x).sum(); };
  REQUIRE(grad(slopes)(kX).to_vector<double>() == Doubles{12, 27, 0.75});
}

TEST_CASE("a rule of the wrong shape says what is wanted", "[custom_vjp]") {
  const auto with_rule = [](auto rule) {
    const auto f =
        custom_vjp([](const Tensor& x, const Tensor& y) { return (x * y).sum(); }, rule, "dot");
    return grad([=](const Tensor& x) { return f(x, x * 2.0); })(kX);
  };
  using T = const Tensor&;
  REQUIRE_THROWS_WITH(
      with_rule([](T x, T, T, T g) { return std::tuple(x * g); }),
      ContainsSubstring("dot: its backward returns 1 tensors for arguments of 2"));
  REQUIRE_THROWS_WITH(
      with_rule([](T x, T y, T, T g) { return std::tuple(y * g, (x * g).sum()); }),
      ContainsSubstring("returns f64[] for tensor 1 of the arguments, which is f64[3]"));
  REQUIRE_THROWS_WITH(
      with_rule([](T x, T y, T, T g) { return std::tuple(y * g, (x * g).to(DType::f32)); }),
      ContainsSubstring("returns f32[3] for tensor 1"));
  const Tensor hidden = kX * 2.0;
  REQUIRE_THROWS_WITH(
      with_rule([&](T x, T y, T, T g) { return std::tuple(y * g * hidden, x * g); }),
      ContainsSubstring("custom_vjp_test.cpp:") &&
          ContainsSubstring(
              "dot_backward: a function with a derivative of its own uses a tensor"));
}

TEST_CASE("no gradient goes on through stop_gradient", "[custom_vjp]") {
  const auto loss = [](const Tensor& x) { return (x * stop_gradient(x * x)).sum(); };
  REQUIRE(grad(loss)(kX).to_vector<double>() == Doubles{4, 9, 0.25});
  const auto slopes = [&](const Tensor& x) { return grad(loss)(x).sum(); };
  REQUIRE(grad(slopes)(kX).to_vector<double>() == Doubles{0, 0, 0});
  const auto tree = [](const Pair& p) {
    const Pair still = stop_gradient(p);
    return (p.first * still.second + p.second * still.first).sum();
  };
  const Pair slope = grad(tree)(Pair{kX, kX * 3.0});
  REQUIRE(slope.first.to_vector<double>() == Doubles{6, -9, 1.5});
  REQUIRE(slope.second.to_vector<double>() == Doubles{2, -3, 0.5});
  const auto pushed = jvp(loss)(std::tuple(kX), std::tuple(ones_like(kX)));
  REQUIRE(pushed.second.item<double>() == 4 + 9 + 0.25);
  REQUIRE(same_bits(stop_gradient(kX), kX));
}

TEST_CASE("a Hessian has the shape twice", "[grad]") {
  const auto cube = [](const Tensor& x) { return (x * x * x).sum() + x[0] * x[1]; };
  const Tensor second = hessian(cube)(kX);
  REQUIRE(second.sizes() == SizeList{3, 3});
  REQUIRE(second.reshape({9}).to_vector<double>() == Doubles{12, 1, 0, 1, -18, 0, 0, 0, 3});
  const auto f = compile([=](const Tensor& a, const Tensor& x) {
    return hessian<1>([](const Tensor& s, const Tensor& y) { return (s * y * y).sum(); })(a, x);
  });
  const Tensor of_square = f(from_vector<double>({5}), kX.reshape({3, 1}));
  REQUIRE(of_square.sizes() == SizeList{3, 1, 3, 1});
  REQUIRE(of_square.reshape({9}).to_vector<double>() == Doubles{10, 0, 0, 0, 10, 0, 0, 0, 10});
  REQUIRE_THROWS_WITH(hessian([](const Tensor& x) { return x * x; })(kX),
                      ContainsSubstring("not one float"));
  REQUIRE(hessian(cube)(kX.slice(0, 0, 2)).numel() == 4);
}
