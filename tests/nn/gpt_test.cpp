// The GPT: what it computes, and that its training has one result.
#include "tiny_compile/nn/gpt.h"

#include <omp.h>

#include <cmath>

#include "tests/catch.h"
#include "tiny_compile/nn/accumulate.h"
#include "tiny_compile/nn/optimiser.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/nn.h"

using namespace tiny_compile;
using namespace tiny_compile::nn;

namespace {

using State = AdamState<Gpt>;
using Trained = std::pair<Tensor, std::pair<Gpt, State>>;
const GptShape kTiny{.vocabulary = 16, .context = 8, .layers = 2, .heads = 2, .width = 8};

Gpt tiny(GptShape shape = kTiny) {
  manual_seed(3);
  return make_gpt(shape);
}

using Loss = Tensor (*)(const Gpt&, const Tensor&, const Tensor&);

struct Setting {
  CompileOptions options = {};
  int threads = 1, steps = 100;
  Loss loss = gpt_loss;
};

struct Results {
  std::vector<Tensor> losses;
  Gpt gpt;
  State state;
};

// Steps of AdamW on a text that repeats itself.
Results train(const Setting& setting) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(setting.threads);
  const Adam adam = adamw(0.1);
  const auto step = compile(
      [&](const Gpt& p, const State& s, const Tensor& x, const Tensor& y, const Tensor& rate) {
        const auto [loss, gradient] = value_and_grad(setting.loss)(p, x, y);
        return Trained(loss, adam.update(p, clip_by_global_norm(gradient, 1).first, s, rate));
      },
      setting.options);
  Results results{{}, tiny(), {}};
  results.state = adam.init(results.gpt);
  for (int i = 0; i < setting.steps; i++) {
    const Tensor x = remainder(reshape(arange(3 * i, 3 * i + 24), {3, 8}), 7);
    const auto [loss, next] = step(results.gpt, results.state, x, remainder(x + 1, 7), 0.01);
    std::tie(results.gpt, results.state) = next;
    results.losses.push_back(loss);
  }
  omp_set_num_threads(before);
  return results;
}

// The network reads bf16 copies of the weights; its scores are compared in f32.
Tensor half_loss(const Gpt& gpt, const Tensor& x, const Tensor& y) {
  const Tensor scores = gpt_scores(nn::to(gpt, DType::bf16), x);
  REQUIRE(scores.dtype() == DType::bf16);
  return cross_entropy(flatten(scores, 0, 1).to(DType::f32), flatten(y));
}

void check_same(const Results& ours, const Results& theirs) {
  const auto a = nn::detail::tensors_of(std::tuple(ours.losses, ours.gpt, ours.state)),
             b = nn::detail::tensors_of(std::tuple(theirs.losses, theirs.gpt, theirs.state));
  REQUIRE(a.size() == b.size());
  for (size_t k = 0; k < a.size(); k++) {
    INFO("tensor " << k);
    REQUIRE(same_bits(a[k], b[k]));
  }
}

Tensor sum_of_losses(const Gpt& gpt, const Tensor& x, const Tensor& y) {
  return gpt_loss(gpt, x, y) * static_cast<double>(x.size(0));
}

}  // namespace

TEST_CASE("a fresh GPT finds all bytes equally likely, nearly", "[gpt]") {
  const Gpt gpt = tiny();
  const Tensor x = reshape(arange(16), {2, 8});
  const Tensor scores = gpt_scores(gpt, x);
  REQUIRE(scores.shape() == Sizes{2, 8, 16});
  const Tensor y = remainder(x + 3, 16);
  REQUIRE(gpt_loss(gpt, x, y).item<double>() == Catch::Approx(std::log(16)).epsilon(0.02));
  REQUIRE(gpt.tokens.weight.std().item<double>() == Catch::Approx(0.02).epsilon(0.2));
  REQUIRE(gpt.blocks[0].down.weight.std().item<double>() == Catch::Approx(0.01).epsilon(0.2));
}

TEST_CASE("a GPT sees what was, not what will be", "[gpt]") {
  const Gpt gpt = tiny();
  const Tensor x = reshape(arange(8), {1, 8});
  const Tensor other = where(arange(8) == 5, 15, x);
  const Tensor a = gpt_scores(gpt, x), b = gpt_scores(gpt, other);
  REQUIRE(same_bits(a.slice(1, 0, 5), b.slice(1, 0, 5)));
  for (int64_t k = 5; k < 8; k++) REQUIRE_FALSE(same_bits(a.select(1, k), b.select(1, k)));
}

TEST_CASE("a GPT's head is its table of tokens unless it has its own", "[gpt]") {
  GptShape shape = kTiny;
  REQUIRE(nn::detail::tensors_of(tiny(shape)).size() == 2 + 2 * 12 + 2);
  shape.tied = false;
  const Gpt gpt = tiny(shape);
  REQUIRE(nn::detail::tensors_of(gpt).size() == 2 + 2 * 12 + 3);
  const Tensor x = reshape(arange(8), {1, 8});
  const Gpt gradient = grad(gpt_loss)(gpt, x, x);
  REQUIRE(gradient.head->shape() == Sizes{16, 8});
  REQUIRE(abs(gradient.tokens.weight).sum().item<double>() > 0);
}

TEST_CASE("a GPT's gradient is its slope", "[gpt]") {
  Gpt gpt = tiny();
  tree::for_each_tensor(gpt, [](Tensor& tensor) { tensor = tensor.to(DType::f64) * 5.0; });
  const Tensor x = remainder(reshape(arange(16), {2, 8}) * 5, 16), y = remainder(x + 3, 16);
  const std::vector<Tensor> slopes = nn::detail::tensors_of(grad(gpt_loss)(gpt, x, y));
  const std::vector<Tensor> at = nn::detail::tensors_of(gpt);
  const auto loss_at = [&](size_t k, double h) {
    std::vector<Tensor> moved = at;
    const Tensor flat = flatten(at[k]);
    moved[k] = reshape(where(arange(flat.size(0)) == 3, flat + h, flat), at[k].sizes());
    return gpt_loss(nn::detail::with_tensors(gpt, moved, 0), x, y).item<double>();
  };
  for (const size_t k : {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 25, 26, 27}) {
    INFO("tensor " << k);
    const double slope = (loss_at(k, 1e-5) - loss_at(k, -1e-5)) / 2e-5;
    REQUIRE(flatten(slopes[k])[3].item<double>() ==
            Catch::Approx(slope).epsilon(1e-5).margin(1e-8));
  }
}

TEST_CASE("100 steps have the same bits for any threads, compiled or interpreted", "[gpt]") {
  const Results one = train({});
  REQUIRE(one.losses[99].item<double>() < 0.5 * one.losses[0].item<double>());  // it learns
  check_same(train({.threads = 3}), one);
  check_same(train({.options = {.backend = "interpreter"}, .threads = 2}), one);
}

TEST_CASE("bf16 arithmetic trains f32 weights, compiled as interpreted", "[gpt]") {
  const Results half = train({.steps = 60, .loss = half_loss});
  const double first = half.losses.front().item<double>(),
               last = half.losses.back().item<double>();
  REQUIRE(last < 0.6 * first);
  const Results exact = train({.steps = 60});
  REQUIRE(last == Catch::Approx(exact.losses.back().item<double>()).epsilon(0.1));
  for (const Tensor& kept :
       nn::detail::tensors_of(std::tuple(half.gpt, half.state.first, half.state.second)))
    REQUIRE(kept.dtype() == DType::f32);
  const Tensor weight = half.gpt.blocks[0].up.weight;  // small steps add up below bf16's digits
  REQUIRE_FALSE(same_bits(weight, weight.to(DType::bf16).to(DType::f32)));
  check_same(train({.threads = 3, .steps = 60, .loss = half_loss}), half);
  check_same(train({.options = {.backend = "interpreter"}, .steps = 60, .loss = half_loss}),
             half);
}

TEST_CASE("k leaves in one call are k calls and a sum", "[accumulate]") {
  const Gpt gpt = tiny();
  const Tensor x = remainder(reshape(arange(48), {6, 8}) * 5, 16), y = remainder(x + 3, 16);
  const auto one = compile(value_and_grad(sum_of_losses));
  const auto three = compile(accumulate(3, value_and_grad(sum_of_losses)));
  std::vector<std::vector<Tensor>> leaves;
  for (int64_t k = 0; k < 3; k++)
    leaves.push_back(nn::detail::tensors_of(
        one(gpt, x.slice(0, 2 * k, 2 * k + 2), y.slice(0, 2 * k, 2 * k + 2))));
  const std::vector<Tensor> together = nn::detail::tensors_of(three(gpt, x, y));
  for (size_t k = 0; k < together.size(); k++) {
    const Tensor by_hand = stack({leaves[0][k], leaves[1][k], leaves[2][k]}).sum(0);
    REQUIRE(same_bits(together[k], by_hand));
  }
  const std::vector<Tensor> whole = nn::detail::tensors_of(one(gpt, x, y));
  REQUIRE(together[0].item<double>() == Catch::Approx(whole[0].item<double>()));
}

TEST_CASE("a GPT and a batch say what does not fit", "[gpt][accumulate]") {
  using Catch::Matchers::ContainsSubstring;
  REQUIRE_THROWS_WITH(make_gpt({.heads = 3, .width = 128}), ContainsSubstring("3 heads"));
  REQUIRE_THROWS_WITH(make_gpt({.layers = 0}), ContainsSubstring("at least 1, not 0"));
  REQUIRE_THROWS_WITH(gpt_scores(tiny(), zeros({1, 9}, DType::i64)),
                      ContainsSubstring("9 tokens are more than the context of 8"));
  REQUIRE_THROWS_WITH(gpt_scores(tiny(), zeros({9}, DType::i64)),
                      ContainsSubstring("[batch, length]"));
  const Tensor x = zeros({6, 8}, DType::i64);
  REQUIRE_THROWS_WITH(accumulate(4, gpt_loss)(tiny(), x, x),
                      ContainsSubstring("6 rows do not divide into 4 leaves"));
  REQUIRE_THROWS_WITH(accumulate(2, gpt_loss)(tiny(), x, zeros({4, 8}, DType::i64)),
                      ContainsSubstring("one first size"));
  REQUIRE_THROWS_WITH(accumulate(0, gpt_loss)(tiny(), x, x), ContainsSubstring("1 leaf"));
}
