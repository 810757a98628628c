// Sequential and attention.
#include "tiny_compile/nn/sequential.h"

#include "tests/nn/gradients.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const nn::LayerOptions kDouble{.dtype = DType::f64};

template <typename Model>
Tensor cubes(const Model& model, const Tensor& x) {
  const Tensor y = model(x);
  return (y * y * y).sum();
}

// Row q of softmax(q k^T / sqrt(width)) v, of one head, by plain loops.
std::vector<double> attended(const std::vector<double>& q, const std::vector<double>& k,
                             const std::vector<double>& v, size_t length, bool causal) {
  const size_t width = q.size() / length;
  std::vector<double> result(q.size());
  for (size_t i = 0; i < length; i++) {
    std::vector<double> weight(causal ? i + 1 : length);
    double total = 0;
    for (size_t j = 0; j < weight.size(); j++) {
      double score = 0;
      for (size_t c = 0; c < width; c++) score += q[i * width + c] * k[j * width + c];
      total += weight[j] = std::exp(score / std::sqrt(static_cast<double>(width)));
    }
    for (size_t j = 0; j < weight.size(); j++) {
      for (size_t c = 0; c < width; c++)
        result[i * width + c] += weight[j] / total * v[j * width + c];
    }
  }
  return result;
}

nn::Linear identity(int64_t width) { return {eye(width, DType::f64), {}}; }

}  // namespace

TEST_CASE("a sequential calls layers, functions and lambdas in order", "[nn]") {
  manual_seed(1);
  const auto net = nn::make_sequential(
      nn::make_linear(3, 4, kDouble), relu, nn::Gelu{"tanh"},
      [](const Tensor& x) { return x * 2; }, nn::make_linear(4, 2, kDouble));
  const Tensor x = randn({5, 3}, DType::f64);
  const auto& [first, second, third, fourth, last] = net.layers;
  CHECK(same_bits(net(x), last(gelu(relu(first(x)), "tanh") * 2)));
  check_gradients(cubes<decltype(net)>, net, 1e-6, x);
  CHECK(tree::tensors_of(net).size() == 4);
  CHECK(same_bits(nn::make_sequential()(x), x));
  CHECK(same_bits(nn::make_sequential(first)(x), first(x)));
}

TEST_CASE("which function a sequential holds is guarded", "[nn]") {
  const auto f = compile([](const nn::Sequential<Tensor (*)(const Operand&)>& net,
                            const Tensor& x) { return net(x); },
                         {.backend = "interpreter"});
  const Tensor x = from_vector<float>({-1, 4});
  CHECK(same_bits(f(nn::make_sequential(relu), x), relu(x)));
  CHECK(same_bits(f(nn::make_sequential(sigmoid), x), sigmoid(x)));
  CHECK(same_bits(f(nn::make_sequential(relu), x), relu(x)));
  CHECK(f.cache().size() == 2);
}

TEST_CASE("attention is a softmax's mean of values, a head at a time", "[nn]") {
  manual_seed(2);
  const int64_t length = 5, width = 6;
  const Tensor x = randn({length, width}, DType::f64);
  for (const bool causal : {false, true}) {
    const nn::Attention one{
        identity(width), identity(width), identity(width), identity(width), 1, causal};
    const std::vector<double> values = x.to_vector<double>();
    const std::vector<double> expected = attended(values, values, values, 5, causal);
    const std::vector<double> found = one(x).to_vector<double>();
    for (size_t i = 0; i < found.size(); i++) CHECK(std::fabs(found[i] - expected[i]) < 1e-13);
    nn::Attention three = one;
    three.heads = 3;
    for (int64_t head = 0; head < 3; head++) {
      const Tensor part = x.narrow(1, 2 * head, 2);
      const std::vector<double> own = part.to_vector<double>();
      const std::vector<double> alone = attended(own, own, own, 5, causal);
      const std::vector<double> with = three(x).narrow(1, 2 * head, 2).to_vector<double>();
      for (size_t i = 0; i < with.size(); i++) CHECK(std::fabs(with[i] - alone[i]) < 1e-13);
    }
  }
}

TEST_CASE("attention of batches, with a mask, over another sequence", "[nn]") {
  manual_seed(3);
  const nn::Attention layer = nn::make_attention(8, 2, {.dtype = DType::f64});
  const Tensor x = randn({2, 3, 4, 8}, DType::f64), memory = randn({2, 3, 7, 8}, DType::f64);
  CHECK(layer(x).shape() == Sizes{2, 3, 4, 8});
  CHECK((layer(x)[1][2] - layer(x[1][2])).norm().item<double>() < 1e-13);
  CHECK(layer.attend(x, memory).shape() == Sizes{2, 3, 4, 8});
  const Tensor all = ones({4, 7}, DType::boolean), none = zeros({4, 7}, DType::f64);
  CHECK(same_bits(layer.attend(x, memory, all), layer.attend(x, memory)));
  CHECK(same_bits(layer.attend(x, memory, none), layer.attend(x, memory)));
  nn::Attention causal = layer;
  causal.causal = true;
  const Tensor below = tril(ones({4, 4}, DType::boolean));
  CHECK(same_bits(layer(x, below), causal(x)));
  const auto loss = [](const nn::Attention& a, const Tensor& from, const Tensor& to) {
    const Tensor y = a.attend(from, to);
    return (y * y * y).sum();
  };
  check_gradients(cubes<nn::Attention>, causal, 1e-6, x[0]);
  check_gradients(loss, layer, 1e-6, x[0], memory[0]);
}

TEST_CASE("attention starts as PyTorch's", "[nn]") {
  manual_seed(4);
  const nn::Attention layer = nn::make_attention(64, 4);
  const double bound = std::sqrt(6.0 / 256);
  for (const nn::Linear* in : {&layer.query, &layer.key, &layer.value}) {
    CHECK(in->weight.max().item<double>() <= bound);
    CHECK(in->weight.max().item<double>() > 0.99 * bound);
    CHECK(same_bits(*in->bias, zeros({64})));
  }
  CHECK(layer.output.weight.max().item<double>() <= 0.125);
  CHECK(layer.output.weight.max().item<double>() > 0.99 * 0.125);
  CHECK(!nn::make_attention(4, 2, {.bias = false}).output.bias);
  CHECK_THROWS_WITH(nn::make_attention(10, 3),
                    ContainsSubstring("sequential_test.cpp") && ContainsSubstring("3 heads"));
  nn::Attention wrong = layer;
  wrong.heads = 5;
  CHECK_THROWS_WITH(wrong(ones({2, 64})),
                    ContainsSubstring("sequential_test.cpp") && ContainsSubstring("5 heads"));
}

TEST_CASE("attention drops weights in training alone", "[nn]") {
  manual_seed(5);
  nn::Attention layer = nn::make_attention(8, 2, {.dropout = 0.5, .dtype = DType::f64});
  const Tensor x = randn({4, 8}, DType::f64);
  CHECK(!same_bits(layer(x), layer(x)));
  CHECK(same_bits(nn::eval(layer)(x), nn::eval(layer)(x)));
  check_gradients(cubes<nn::Attention>, layer, 1e-6, x);
}
