// Optimisers against values of torch 2.11 (the same three steps of torch.optim, printed to nine
// digits) and against first steps worked out by hand.
#include "tiny_compile/nn/optimiser.h"

#include <cmath>

#include "tests/catch.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"

using namespace tiny_compile;
using namespace tiny_compile::nn;

namespace {

struct Pair {
  Tensor a, b;
};

const Pair kStart{tensor({{1.f, -2.f, 0.5f}}), tensor({0.25f})};

// Three steps with rates 0.1, 0.1 / 2, 0.1 / 3, one compiled function.
template <typename Optimiser>
std::vector<float> after_three(const Optimiser& optimiser) {
  auto state = optimiser.init(kStart);
  using State = decltype(state);
  const auto step =
      compile([&](const Pair& p, const Pair& g, const State& s, const Tensor& rate) {
        return optimiser.update(p, g, s, rate);
      });
  Pair p = kStart;
  for (int i = 0; i < 3; i++) {
    const Pair g{tensor({{0.5f, -1.f, 0.f}}) * (i + 1.0),
                 tensor({2.f - static_cast<float>(i)})};
    std::tie(p, state) = step(p, g, state, 0.1 / (i + 1));
  }
  REQUIRE(step.cache().size() == 1);  // another rate is no other function
  REQUIRE(state.step.template item<int64_t>() == 3);
  std::vector<float> values = p.a.to_vector<float>();
  values.push_back(p.b[0].item<float>());
  return values;
}

void check_close(const std::vector<float>& ours, const std::vector<double>& torch) {
  REQUIRE(ours.size() == torch.size());
  for (size_t k = 0; k < ours.size(); k++)
    REQUIRE(std::abs(ours[k] - torch[k]) <= 3e-7 * (1 + std::abs(torch[k])));
}

}  // namespace

TEST_CASE("optimisers move parameters as PyTorch's do", "[optimiser]") {
  check_close(after_three(Sgd{}), {0.849999964, -1.69999993, 0.5, -3.7252903e-09});
  check_close(after_three(Sgd{.momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01}),
              {0.846750259, -1.69350052, 0.498857021, -0.134439021});
  check_close(after_three(Sgd{.momentum = 0.9, .nesterov = true}),
              {0.655599952, -1.3111999, 0.5, -0.381599993});
  check_close(after_three(Adam{}), {0.819807589, -1.81980741, 0.5, 0.0793717653});
  check_close(after_three(Adam{.weight_decay = 0.1}),
              {0.818992198, -1.81902492, 0.318032652, 0.07924743});
  check_close(after_three(adamw(0.1)), {0.802566588, -1.78433299, 0.490883261, 0.0758004189});
}

TEST_CASE("Adam's first step is the rate, whatever the gradient's size", "[optimiser]") {
  const Adam adam{.eps = 0};
  for (const float g : {1e-12f, 3.f, 1e12f}) {
    const Pair gradients{tensor({{g, -g, g}}), tensor({-g})};
    const auto [p, state] = adam.update(kStart, gradients, adam.init(kStart), full({}, 0.25));
    REQUIRE(p.b[0].item<float>() == Catch::Approx(0.5f));
    REQUIRE(p.a.to_vector<float>()[1] == Catch::Approx(-1.75f));
    REQUIRE(state.first.b[0].item<float>() == Catch::Approx(-0.1f * g));
    REQUIRE(state.second.b[0].item<float>() == Catch::Approx(0.001f * g * g).epsilon(1e-5));
  }
}

TEST_CASE("weight decay spares what has fewer axes than it is told", "[optimiser]") {
  Adam adam = adamw(0.5);
  adam.decayed_rank = 2;
  const Pair none{zeros({1, 3}), zeros({1})};
  const auto [p, state] = adam.update(kStart, none, adam.init(kStart), full({}, 0.1));
  REQUIRE(p.a.to_vector<float>() == std::vector<float>{0.95f, -1.9f, 0.475f});
  REQUIRE(same_bits(p.b, kStart.b));
}

TEST_CASE("bf16 parameters are moved in f32 and rounded once", "[optimiser]") {
  const Tensor p = tensor({1.f}).to(DType::bf16), g = tensor({1.f}).to(DType::bf16);
  const Sgd sgd;
  const auto [moved, state] = sgd.update(p, g, sgd.init(p), full({}, 0.01));
  REQUIRE(same_bits(moved, tensor({0.99f}).to(DType::bf16)));
}

TEST_CASE("clipping scales all gradients by one norm", "[optimiser]") {
  const Pair g{tensor({{3.f, 4.f, 0.f}}), tensor({12.f})};
  const auto [shorter, norm] = clip_by_global_norm(g, 6.5);
  REQUIRE(norm.item<float>() == 13);
  check_close(shorter.a.to_vector<float>(), {1.4999998807907104, 1.9999998807907104, 0});
  check_close(shorter.b.to_vector<float>(), {5.999999523162842});
  const Pair as_is = clip_by_global_norm(g, 20).first;
  REQUIRE(same_bits(as_is.a, g.a));
  const Pair bad{tensor({{3.f, NAN, 0.f}}), tensor({12.f})};
  REQUIRE(std::isnan(clip_by_global_norm(bad, 20).first.b[0].item<float>()));
}

TEST_CASE("an optimiser says what does not fit", "[optimiser]") {
  const Sgd sgd;
  using Catch::Matchers::ContainsSubstring;
  REQUIRE_THROWS_WITH(
      sgd.update(kStart, Pair{kStart.b, kStart.b}, sgd.init(kStart), full({}, 1)),
      ContainsSubstring("parameter 0 is f32[1,3], its gradient f32[1]"));
  const std::vector<Tensor> two{kStart.a, kStart.b}, one{kStart.a};
  REQUIRE_THROWS_WITH(adamw().update(two, one, adamw().init(two), full({}, 1)),
                      ContainsSubstring("2 parameters but 1 gradients"));
  REQUIRE_THROWS_WITH(clip_by_global_norm(kStart, 0), ContainsSubstring("above 0"));
  REQUIRE_THROWS_WITH(clip_by_global_norm(std::vector<Tensor>{}, 1),
                      ContainsSubstring("no gradients"));
}
