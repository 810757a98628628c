// tc::vjp, tc::checkpoint and CompileOptions::memory_budget, as a user calls them.
#include "tiny_compile/compile/vjp.h"

#include "tests/catch.h"
#include "tiny_compile/compile/explain.h"
#include "tiny_compile/nn/gpt.h"
#include "tiny_compile/tensor/memory_use.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/nn.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Model {
  Tensor weight, bias;
};

Tensor predict(const Model& model, const Tensor& x) {
  return tanh(linear(x, model.weight, model.bias)) * 2.0;
}

Model model_of(int64_t width) { return {randn({width, width}), randn({width})}; }

template <typename Tree>
int64_t bytes_of(const Tree& tree) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tree::tensors_of(tree))
    bytes += static_cast<int64_t>(tensor.info().storage->bytes());
  return bytes;
}

std::vector<Tensor> tensors(const Model& model) { return {model.weight, model.bias}; }

void require_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t k = 0; k < a.size(); k++) REQUIRE(same_bits(a[k], b[k]));
}

}  // namespace

TEST_CASE("a pullback gives each argument's gradient, whatever is kept", "[vjp]") {
  manual_seed(1);
  const Model model = model_of(5);
  const Tensor x = randn({7, 5}), dy = randn({7, 5});
  const auto loss = [&](const Model& m, const Tensor& a) { return (predict(m, a) * dy).sum(); };
  const auto want =
      compile([&](const Model& m, const Tensor& a) { return grad<0>(loss)(m, a); });
  const auto want_x =
      compile([&](const Model& m, const Tensor& a) { return grad<1>(loss)(m, a); });
  for (const double budget : {0.0, 0.5, 1.0}) {
    const auto both = vjp(predict, {.memory_budget = budget});
    for (int turn = 0; turn < 2; turn++) {
      const auto [y, pullback] = both(model, x);
      REQUIRE(same_bits(y, compile(predict)(model, x)));
      const auto [d_model, dx] = pullback(dy);
      require_same(tensors(d_model), tensors(want(model, x)));
      REQUIRE(same_bits(dx, want_x(model, x)));
      REQUIRE(same_bits(std::get<1>(pullback(dy)), dx));  // as often as you like
    }
  }
}

TEST_CASE("a pullback belongs to its own call", "[vjp]") {
  const auto both = vjp([](const Tensor& x) { return x * x; });
  const auto [y1, first] = both(from_vector<double>({3}));
  const auto [y2, second] = both(from_vector<double>({4, 5}));
  REQUIRE(std::get<0>(first(ones({1}, DType::f64))).to_vector<double>() ==
          std::vector<double>{6});
  REQUIRE(std::get<0>(second(ones({2}, DType::f64))).to_vector<double>() ==
          std::vector<double>{8, 10});
}

TEST_CASE("integers have zeros, captured tensors are constant, results may be many", "[vjp]") {
  const Tensor scale = from_vector<double>({2, 3, 4});
  const auto both = vjp([&](const Tensor& x, const Tensor& places) {
    return std::pair(gather(x, 0, places) * scale, places + 1);
  });
  const Tensor x = from_vector<double>({1, 2}), places = from_vector<int64_t>({0, 1, 1});
  const auto [y, pullback] = both(x, places);
  REQUIRE(y.second.to_vector<int64_t>() == std::vector<int64_t>{1, 2, 2});
  const auto [dx, nothing] = pullback(std::pair(ones({3}, DType::f64), places));
  REQUIRE(dx.to_vector<double>() == std::vector<double>{2, 7});
  REQUIRE(nothing.to_vector<int64_t>() == std::vector<int64_t>{0, 0, 0});
}

TEST_CASE("a vjp inside a compiled function, and of a gradient", "[vjp]") {
  const auto square = [](const Tensor& x) { return x * x * x; };
  const auto slope = [&](const Tensor& x) {
    const auto [y, pullback] = vjp(square)(x);
    return std::get<0>(pullback(ones_like(y)));
  };
  const Tensor x = from_vector<double>({2});
  REQUIRE(compile(slope)(x).to_vector<double>() == std::vector<double>{12});
  const auto twice = grad([&](const Tensor& a) { return slope(a).sum(); });
  REQUIRE(twice(x).to_vector<double>() == std::vector<double>{12});
}

TEST_CASE("a vjp that cannot be says why", "[vjp]") {
  REQUIRE_THROWS_WITH(vjp([](const Tensor& x) { return x + 1; })(from_vector<int64_t>({1})),
                      ContainsSubstring("no argument has a tensor of floats"));
  const auto [y, pullback] = vjp([](const Tensor& x) { return x * 2.0; })(ones({3}));
  REQUIRE_THROWS_WITH(pullback(ones({2})), ContainsSubstring("cotangent 0 is f32[2]") &&
                                               ContainsSubstring("returned f32[3]"));
  REQUIRE_THROWS_WITH(pullback(ones({3}, DType::f64)), ContainsSubstring("f64[3]"));
  REQUIRE_THROWS_WITH(pullback(Tensor()), ContainsSubstring("undefined"));
  REQUIRE_THROWS_WITH(vjp([](const std::vector<Tensor>&) { return std::vector<Tensor>(); })(
                          std::vector<Tensor>{ones({1})}),
                      ContainsSubstring("returns no tensor"));
  for (const double bad : {-0.5, 1.01, std::nan("")})
    REQUIRE_THROWS_WITH(vjp(predict, {.memory_budget = bad}),
                        ContainsSubstring("memory_budget is") && ContainsSubstring("from 0"));
}

TEST_CASE("a checkpoint computes again and keeps the bits", "[checkpoint]") {
  manual_seed(2);
  const Model model = model_of(6);
  const Tensor x = randn({4, 6});
  const auto chain = [](bool marked) {
    return [=](const Model& m, const Tensor& a) {
      const auto block = [](const Model& n, const Tensor& b) {
        return relu(predict(n, b)) + dropout(b, 0.5, true);
      };
      Tensor y = a;
      for (int k = 0; k < 3; k++) y = marked ? checkpoint(block)(m, y) : block(m, y);
      return y.sum();
    };
  };
  const auto plain = compile(
      [&](const Model& m, const Tensor& a) { return value_and_grad(chain(false))(m, a); });
  const auto again = compile(
      [&](const Model& m, const Tensor& a) { return value_and_grad(chain(true))(m, a); });
  manual_seed(3);
  const auto [loss, gradient] = plain(model, x);
  manual_seed(3);
  const auto [loss2, gradient2] = again(model, x);
  REQUIRE(same_bits(loss, loss2));
  require_same(tensors(gradient), tensors(gradient2));
  const std::string text = print(again.specialization(model, x).traced.graph);
  REQUIRE_THAT(text, ContainsSubstring("matmul") && ContainsSubstring("again=1"));
}

TEST_CASE("checkpoints nest, and have second derivatives", "[checkpoint]") {
  const Tensor scale = from_vector<double>({2, 1});
  const auto inner = [&](const Tensor& x) { return sin(x * scale); };
  const auto outer = [&](const Tensor& x) { return checkpoint(inner)(x) * x; };
  const auto f = [&](const Tensor& x) { return checkpoint(outer)(x).sum(); };
  const auto plain = [&](const Tensor& x) { return (inner(x) * x).sum(); };
  const Tensor x = from_vector<double>({0.5, -1});
  REQUIRE(same_bits(grad(f)(x), grad(plain)(x)));
  const auto second = [&](const auto& g) {
    return grad([&](const Tensor& a) { return (grad(g)(a) * scale).sum(); })(x);
  };
  for (int k = 0; k < 2; k++)
    REQUIRE(second(f)[k].template item<double>() ==
            Catch::Approx(second(plain)[k].template item<double>()).epsilon(1e-12));
  const auto step = compile([&](const Tensor& a) { return grad(f)(a); });
  REQUIRE_THAT(print(step.specialization(x).traced.graph), ContainsSubstring("again=2"));
}

TEST_CASE("a checkpoint without a gradient is its function", "[checkpoint]") {
  const auto f = [](const Tensor& x) { return exp(x); };
  const Tensor x = from_vector<double>({1});
  REQUIRE(same_bits(checkpoint(f)(x), exp(x)));
  REQUIRE(print(compile(checkpoint(f)).specialization(x).traced.graph).find("checkpoint") ==
          std::string::npos);
  REQUIRE_THROWS_WITH(grad([](const Tensor& a) {
                        checkpoint([](const Tensor&) { return std::vector<Tensor>(); })(a);
                        return a.sum();
                      })(x),
                      ContainsSubstring("checkpoint: the function returns no tensor"));
}

TEST_CASE("the peak of a GPT's gradient grows with the memory budget", "[partition]") {
  manual_seed(4);
  const nn::Gpt gpt =
      nn::make_gpt({.vocabulary = 32, .context = 32, .layers = 12, .heads = 2, .width = 16});
  const Tensor index = remainder(reshape(arange(0, 64), {2, 32}), 32);
  const Tensor target = remainder(index + 1, 32);
  const int64_t inputs = bytes_of(std::tuple(gpt, index, target));
  std::vector<int64_t> peaks;  // as measured: inputs, results and all between
  for (const double budget : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const auto step =
        compile([](const nn::Gpt& g, const Tensor& x,
                   const Tensor& y) { return value_and_grad(nn::gpt_loss)(g, x, y); },
                {.memory_budget = budget});
    int64_t outputs = bytes_of(step(gpt, index, target));  // compiled
    const int64_t before = memory_use(cpu).bytes;
    reset_peak_memory(cpu);
    step(gpt, index, target);
    peaks.push_back(inputs + memory_use(cpu).peak - before);
    const Graph graph = step.specialization(gpt, index, target).traced.graph;
    const Pipeline planned = until(default_pipeline(), "plan_memory");
    const int64_t plan =
        inputs + outputs + run_pipeline(planned, graph, false).program.arena_bytes;
    CAPTURE(budget, plan);
    CHECK(static_cast<double>(peaks.back()) == Catch::Approx(plan).epsilon(0.05));
  }
  CAPTURE(peaks);
  REQUIRE(std::is_sorted(peaks.begin(), peaks.end()));
  REQUIRE(peaks.front() * 10 < peaks.back() * 9);
}
