// Layers: values worked out by hand, gradients against central differences, and structs of layers
// as arguments and results of compiled functions.
#include "tiny_compile/nn/layers.h"

#include "tests/nn/gradients.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Values = std::vector<double>;

Tensor squared(const Tensor& y) { return (y * y).sum(); }

template <typename Layer>
Tensor layer_loss(const Layer& layer, const Tensor& x) {
  const Tensor y = layer(x);
  return (y * y * y).sum() + y.mean();
}

struct Mlp {
  nn::Linear hidden, classes;
  nn::Dropout dropout;
  Tensor operator()(const Operand& x) const { return classes(dropout(tc_relu(hidden(x)))); }
  static Tensor tc_relu(const Tensor& x) { return relu(x); }
};

Mlp make_mlp(DType dtype) {
  return {nn::make_linear(3, 4, {.dtype = dtype}), nn::make_linear(4, 2, {.dtype = dtype}), {}};
}

}  // namespace

TEST_CASE("a linear layer is x times the weight's rows, plus the bias", "[nn]") {
  const nn::Linear layer{from_vector<double>({1, 2, 3, 4, 5, 6}, {2, 3}),
                         from_vector<double>({10, 20})};
  CHECK(layer(from_vector<double>({1, 0, -1})).to_vector<double>() == Values{8, 18});
  const nn::Linear plain{layer.weight, {}};
  const Tensor y = plain(ones({4, 5, 3}, DType::f64));
  CHECK(y.shape() == Sizes{4, 5, 2});
  CHECK(y[3][4].to_vector<double>() == Values{6, 15});
  CHECK(layer(ones({0, 3}, DType::f64)).shape() == Sizes{0, 2});
}

TEST_CASE("makers draw PyTorch's initial values", "[nn]") {
  manual_seed(1);
  const nn::Linear layer = nn::make_linear(16, 4000);
  const Tensor weight = layer.weight.to(DType::f64), bias = layer.bias->to(DType::f64);
  for (const Tensor& drawn : {weight, bias}) {
    CHECK(drawn.max().item<double>() <= 0.25);
    CHECK(drawn.max().item<double>() > 0.249);
    CHECK(drawn.min().item<double>() >= -0.25);
    CHECK(drawn.std().item<double>() == Catch::Approx(0.25 / std::sqrt(3.0)).epsilon(0.03));
  }
  CHECK(!nn::make_linear(2, 2, {.bias = false}).bias);
  CHECK(nn::make_linear(2, 2, {.dtype = DType::bf16}).weight.dtype() == DType::bf16);
  const Tensor table = nn::make_embedding(100, 500).weight;
  CHECK(table.std().item<double>() == Catch::Approx(1).epsilon(0.02));
  const nn::LayerNorm norm = nn::make_layer_norm({2, 3});
  CHECK(same_bits(norm.weight, ones({2, 3})));
  CHECK(same_bits(*norm.bias, zeros({2, 3})));
  CHECK(same_bits(nn::make_rms_norm({3}).weight, ones({3})));
}

TEST_CASE("a maker of a size below 1 is an error at its line", "[nn]") {
  CHECK_THROWS_WITH(nn::make_linear(0, 3),
                    ContainsSubstring("layers_test.cpp") &&
                        ContainsSubstring("in must be at least 1, not 0"));
  CHECK_THROWS_WITH(nn::make_embedding(5, -2), ContainsSubstring("width must be at least 1"));
  CHECK_THROWS_WITH(nn::make_layer_norm({}), ContainsSubstring("needs an axis"));
  CHECK_THROWS_WITH(nn::make_rms_norm({3, 0}), ContainsSubstring("make_rms_norm"));
  CHECK_THROWS_WITH(nn::make_linear(3, 3, {.dtype = DType::i64}),
                    ContainsSubstring("layers_test.cpp") && ContainsSubstring("i64"));
  CHECK_THROWS_WITH(nn::make_linear(3, 2)(ones({4})), ContainsSubstring("layers_test.cpp"));
}

TEST_CASE("norms of hand-worked rows", "[nn]") {
  const Tensor x = from_vector<double>({1, 3, -2, 2}, {2, 2});
  const nn::LayerNorm norm{from_vector<double>({1, 2}), from_vector<double>({0, 1}), 0};
  CHECK(norm(x).to_vector<double>() == Values{-1, 3, -1, 3});
  const nn::RMSNorm rms{from_vector<double>({1, 2}), 0};
  CHECK(rms(from_vector<double>({3, 3})).to_vector<double>() == Values{1, 2});
}

TEST_CASE("layers' gradients are central differences", "[nn]") {
  manual_seed(2);
  const nn::LayerOptions f64{.dtype = DType::f64};
  const Tensor x = randn({2, 3, 4}, DType::f64);
  check_gradients(layer_loss<nn::Linear>, nn::make_linear(4, 3, f64), 1e-7, x);
  check_gradients(layer_loss<nn::LayerNorm>,
                  nn::LayerNorm{randn({3, 4}, DType::f64), randn({3, 4}, DType::f64)}, 1e-7, x);
  check_gradients(layer_loss<nn::RMSNorm>, nn::RMSNorm{randn({4}, DType::f64)}, 1e-7, x);
  const Tensor index = from_vector<int64_t>({0, 2, 2, 4});
  check_gradients(layer_loss<nn::Embedding>, nn::make_embedding(5, 3, DType::f64), 1e-7, index);
  const auto by_input = [](const Tensor& input, const nn::LayerNorm& norm) {
    return layer_loss(norm, input);
  };
  check_gradients(by_input, x, 1e-6,
                  nn::LayerNorm{randn({3, 4}, DType::f64), randn({3, 4}, DType::f64)});
}

TEST_CASE("a gradient of a model is a model, its numbers and mode as they were", "[nn]") {
  manual_seed(3);
  const Mlp model = nn::eval(make_mlp(DType::f64));
  const auto loss = [](const Mlp& m, const Tensor& x) { return squared(m(x)); };
  check_gradients(loss, model, 1e-7, randn({5, 3}, DType::f64));
  const Mlp slopes = grad(loss)(model, randn({5, 3}, DType::f64));
  CHECK(slopes.dropout.p == 0.5);
  CHECK(slopes.dropout.mode == nn::Mode::Evaluation);
  CHECK(slopes.hidden.bias->shape() == Sizes{4});
  CHECK(nn::parameter_count(model) == 4 * 3 + 4 + 2 * 4 + 2);
}

TEST_CASE("dropout draws a mask in training and does nothing in evaluation", "[nn]") {
  manual_seed(4);
  const nn::Dropout layer{0.25};
  const Tensor x = full({100, 100}, 3.0);
  const Tensor y = layer(x), z = layer(x);
  CHECK(!same_bits(y, z));
  double dropped = 0;
  for (const float element : y.to_vector<float>()) {
    CHECK((element == 0 || element == 4));
    dropped += element == 0;
  }
  CHECK(dropped == Catch::Approx(2500).margin(150));  // 3.5 deviations
  manual_seed(4);
  CHECK(same_bits(layer(x), y));
  CHECK(same_bits(nn::eval(layer)(x), x));
  CHECK(nn::train(nn::eval(layer)).mode == nn::Mode::Training);
  const auto loss = [](const Tensor& input, const nn::Dropout& drop) {
    return squared(drop(input));
  };
  check_gradients(loss, randn({3, 5}, DType::f64), 1e-7, layer);  // the same mask backward
}

TEST_CASE("a step of training compiled in C++ has the interpreter's bits", "[nn]") {
  const Scratch cache;
  const Setting setting("TC_CACHE_DIR", cache.path("cache"));
  manual_seed(8);
  const Mlp model = make_mlp(DType::f32);
  const auto step = [](const Mlp& m, const Tensor& x) {
    const auto loss = [](const Mlp& now, const Tensor& input) { return squared(now(input)); };
    const auto [value, slopes] = value_and_grad(loss)(m, x);
    return std::pair(value, tree::map([](auto w, auto d) { return w - 0.1 * d; }, m, slopes));
  };
  const Tensor x = randn({7, 3});
  manual_seed(9);
  const auto compiled = compile(step)(model, x);
  manual_seed(9);
  const auto interpreted = compile(step, {.backend = "interpreter"})(model, x);
  tree::map(
      [](const Tensor& a, const Tensor& b) {
        CHECK(same_bits(a, b));
        return a;
      },
      compiled, interpreted);
}

TEST_CASE("values of a struct are guarded, elements are not", "[nn]") {
  manual_seed(5);
  const auto f =
      compile([](const Mlp& m, const Tensor& x) { return m(x); }, {.backend = "interpreter"});
  Mlp model = nn::eval(make_mlp(DType::f32));
  const Tensor x = randn({5, 3});
  CHECK(same_bits(f(model, x), model(x)));
  model.hidden = nn::make_linear(3, 4);
  CHECK(same_bits(f(model, x), model(x)));
  CHECK(f.cache().size() == 1);
  f(nn::train(model), x);
  CHECK(f.cache().size() == 2);
  model.hidden.bias.reset();
  CHECK(same_bits(f(model, x), model(x)));
  CHECK(f.cache().size() == 3);
}

TEST_CASE("bf16 arithmetic with f32 master weights", "[nn]") {
  manual_seed(6);
  const Mlp model = nn::eval(make_mlp(DType::f32));
  const auto loss = [](const Mlp& m, const Tensor& x) {
    const Tensor y = nn::to(m, DType::bf16)(x.to(DType::bf16));
    REQUIRE(y.dtype() == DType::bf16);
    return squared(y.to(DType::f32));
  };
  const auto exact = [](const Mlp& m, const Tensor& x) { return squared(m(x)); };
  const Tensor x = randn({6, 3});
  const Mlp slopes = grad(loss)(model, x), wanted = grad(exact)(model, x);
  tree::map(
      [](const Tensor& slope, const Tensor& want) {
        CHECK(slope.dtype() == DType::f32);
        CHECK((slope - want).norm().item<double>() < 0.03 * want.norm().item<double>());
        return slope;
      },
      slopes, wanted);
  const nn::Embedding with_index = nn::to(nn::make_embedding(3, 2), DType::f64);
  CHECK(with_index.weight.dtype() == DType::f64);
  CHECK(nn::to(std::pair(ones({2}), arange(3)), DType::bf16).second.dtype() == DType::i64);
}

TEST_CASE("a map of trees of different sizes is an error", "[nn]") {
  const auto first = [](const Tensor& a, const Tensor&) { return a; };
  CHECK_THROWS_WITH(tree::map(first, std::vector<Tensor>{ones({1})}, std::vector<Tensor>{}),
                    ContainsSubstring("trees of 1 and of 0 tensors"));
}
