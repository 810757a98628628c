// tc::grad, value_and_grad and jvp, as a user calls them.
#include "tiny_compile/compile/grad.h"
#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/compile/compile.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"

using namespace tiny_compile;

namespace {

struct Model {
  Tensor weight, bias;
};

Tensor loss_of(const Model& model, const Tensor& x, const Tensor& y) {
  return mse_loss(tanh(linear(x, model.weight, model.bias)), y);
}

}  // namespace

TEST_CASE("a gradient has its argument's structure", "[grad]") {
  manual_seed(1);
  const Model model{randn({2, 3}, DType::f64), randn({2}, DType::f64)};
  const Tensor x = randn({5, 3}, DType::f64), y = randn({5, 2}, DType::f64);
  const auto [loss, at_once] = value_and_grad(loss_of)(model, x, y);
  REQUIRE(loss.item<double>() == loss_of(model, x, y).item<double>());
  const auto step = compile([](const Model& m, const Tensor& a, const Tensor& b) {
    return value_and_grad(loss_of)(m, a, b);
  });
  const auto [compiled_loss, compiled] = step(model, x, y);
  REQUIRE(same_bits(compiled.weight, at_once.weight));
  REQUIRE(same_bits(compiled.bias, at_once.bias));
  const double h = 1e-6;
  Model moved = model;
  moved.bias = model.bias + from_vector<double>({h, 0});
  const double up = loss_of(moved, x, y).item<double>();
  moved.bias = model.bias - from_vector<double>({h, 0});
  const double down = loss_of(moved, x, y).item<double>();
  REQUIRE(at_once.bias[0].item<double>() == Catch::Approx((up - down) / (2 * h)).epsilon(1e-7));
}

TEST_CASE("gradients of gradients", "[grad]") {
  const auto cube = [](const Tensor& x) { return (x * x * x).sum(); };
  const Tensor x = from_vector<double>({2, -1});
  REQUIRE(grad(cube)(x).to_vector<double>() == std::vector<double>{12, 3});
  const auto slope_sum = [&](const Tensor& a) { return grad(cube)(a).sum(); };
  REQUIRE(grad(slope_sum)(x).to_vector<double>() == std::vector<double>{12, -6});
  const auto third = [&](const Tensor& a) { return grad(slope_sum)(a).sum(); };
  REQUIRE(grad(third)(x).to_vector<double>() == std::vector<double>{6, 6});
}

TEST_CASE("what surrounds a function is constant to its gradient", "[grad]") {
  const auto f = compile([](const Tensor& x) {
    const Tensor twice = x * 2.0;
    return grad([&](const Tensor& a) { return (a * twice).sum(); })(x);
  });
  REQUIRE(f(from_vector<double>({3})).to_vector<double>() == std::vector<double>{6});
}

TEST_CASE("a tangent is the derivative in a direction", "[grad]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    return std::pair(sin(x) * y, x.sum());
  };
  const Tensor x = from_vector<double>({0.5, 1}), y = from_vector<double>({2, 3});
  const Tensor dx = from_vector<double>({1, 0}), dy = from_vector<double>({0, 1});
  const auto [value, change] = jvp(f)(std::tuple(x, y), std::tuple(dx, dy));
  REQUIRE(same_bits(value.first, sin(x) * y));
  REQUIRE(change.first[0].item<double>() == Catch::Approx(2 * std::cos(0.5)));
  REQUIRE(change.first[1].item<double>() == Catch::Approx(std::sin(1.0)));
  REQUIRE(change.second.item<double>() == 1);
}

TEST_CASE("a gradient that cannot be says why", "[grad]") {
  const Tensor x = from_vector<double>({1, 2});
  REQUIRE_THROWS_WITH(
      grad([](const Tensor& a) { return a * a; })(x),
      Catch::Matchers::ContainsSubstring("grad_test.cpp") &&
          Catch::Matchers::ContainsSubstring("the loss is f64[2], not one float"));
  REQUIRE_THROWS_WITH(grad([](const Tensor& a) { return a.sum(); })(from_vector<int64_t>({1})),
                      Catch::Matchers::ContainsSubstring("i64[1]") &&
                          Catch::Matchers::ContainsSubstring("only floats"));
}

TEST_CASE("gradients of a GPU's tensors, compiled or not, are the CPU's and lie there",
          "[grad][cuda]") {
  NEEDS_GPU;
  manual_seed(3);
  const Model model{randn({7, 33}), randn({7})};
  const Tensor x = randn({5, 33}), y = randn({5, 7});
  const auto there = [](const Tensor& t) { return copy_to(t, cuda); };
  const Model model_there{there(model.weight), there(model.bias)};
  const auto [loss, wanted] = value_and_grad(loss_of)(model, x, y);
  const CompileOptions same_bits_as_cpu{.deterministic = true};
  const auto step = compile([](const Model& m, const Tensor& a,
                               const Tensor& b) { return value_and_grad(loss_of)(m, a, b); },
                            same_bits_as_cpu);
  for (const bool compiled : {false, true}) {
    INFO("compiled: " << compiled);
    const auto [got_loss, got] = compiled
                                     ? step(model_there, there(x), there(y))
                                     : value_and_grad(loss_of)(model_there, there(x), there(y));
    REQUIRE(got.weight.device() == cuda);
    REQUIRE(same_bits(copy_to(got_loss, cpu), loss));
    REQUIRE(same_bits(copy_to(got.weight, cpu), wanted.weight));
    REQUIRE(same_bits(copy_to(got.bias, cpu), wanted.bias));
  }
  const auto slope = [](const Tensor& a) {
    return grad([](const Tensor& b) { return (exp(b) * sin(b)).sum(); })(a).sum();
  };
  REQUIRE(same_bits(copy_to(grad(slope)(there(x)), cpu), grad(slope)(x)));
}
