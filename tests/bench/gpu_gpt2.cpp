// GPT-2's forward pass with its loss, and with the gradients of all its weights, 124 M parameters in
// bf16: the largest graphs of the table. Attention is written out as matmul, softmax, matmul.
// Weights are random.
//
// A mean over all words hardly tells a wrong network: without its mask the loss is off by 1.6e-4.
// So the small instance has larger weights and returns the last hidden state too.
#include <cmath>

#include "tests/bench/gpu_rows.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Tensor;

struct Gpt2 {
  int64_t batch, length, layers, heads, width, words;
  float weight;  // the largest of a matrix
  bool returns_hidden;
};
constexpr Gpt2 kFull{8, 1024, 12, 12, 768, 50257, 0.035f, false};  // standard deviation 0.02
constexpr Gpt2 kTiny{2, 10, 2, 2, 16, 61, 0.43f, true};  // a linear keeps its input's size
constexpr int kPerLayer = 12;                            // weights: two of each norm and linear

// Inputs: index [B,T], target [B*T], wte [V,C], wpe [T,C], 12 a layer, the last norm's two.
std::vector<Input> gpt2_inputs(const Gpt2& m) {
  std::vector<Input> inputs;
  auto add = [&](tc::Sizes shape, float scale, float shift = 0) {
    const uint32_t seed = static_cast<uint32_t>(inputs.size()) + 1;
    inputs.push_back(dense_input(DType::bf16, std::move(shape), seed));
    inputs.back().scale = scale;
    inputs.back().shift = shift;
  };
  for (const tc::Sizes& shape : {tc::Sizes{m.batch, m.length}, tc::Sizes{m.batch * m.length}}) {
    inputs.push_back(dense_input(DType::i64, shape, static_cast<uint32_t>(inputs.size()) + 1));
    inputs.back().classes = m.words;
  }
  const int64_t c = m.width;
  auto norm = [&] { add({c}, 0.1f, 1), add({c}, 0.1f); };
  auto linear = [&](int64_t in, int64_t out) {
    add({out, in}, m.weight), add({out}, m.weight);
  };
  add({m.words, c}, m.weight);
  add({m.length, c}, m.weight);
  for (int64_t layer = 0; layer < m.layers; layer++) {
    norm(), linear(c, 3 * c), linear(c, c);
    norm(), linear(c, 4 * c), linear(4 * c, c);
  }
  norm();
  return inputs;
}

Tensor attention(const Gpt2& m, const Tensor& x, const Tensor* w) {
  const Tensor qkv = tc::linear(x, w[0], w[1]);
  auto part = [&](int64_t k) {
    const Tensor one = qkv.narrow(-1, k * m.width, m.width);
    return one.reshape({m.batch, m.length, m.heads, m.width / m.heads}).transpose(1, 2);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(m.width / m.heads));
  const Tensor allowed = tc::tril(tc::ones({m.length, m.length}, DType::boolean));
  const Tensor scores = tc::matmul(part(0), part(1).transpose(-2, -1)) * scale;
  const Tensor weights =
      tc::softmax(tc::masked_fill(scores, tc::logical_not(allowed), -HUGE_VAL), -1);
  const Tensor y = tc::matmul(weights, part(2)).transpose(1, 2);
  return tc::linear(y.reshape({m.batch, m.length, m.width}), w[2], w[3]);
}

Tensor block(const Gpt2& m, const Tensor& x, const Tensor* w) {
  const Tensor h = x + attention(m, tc::layer_norm(x, {m.width}, w[0], w[1]), w + 2);
  const Tensor a = tc::linear(tc::layer_norm(h, {m.width}, w[6], w[7]), w[8], w[9]);
  return h + tc::linear(tc::gelu(a, "tanh"), w[10], w[11]);
}

std::vector<Tensor> gpt2(const Gpt2& m, const std::vector<Tensor>& x) {
  const Tensor &index = x[0], &target = x[1], &wte = x[2], &wpe = x[3];
  Tensor h = tc::embedding(index, wte) + wpe;
  for (int64_t layer = 0; layer < m.layers; layer++)
    h = block(m, h, x.data() + 4 + layer * kPerLayer);
  h = tc::layer_norm(h, {m.width}, x[x.size() - 2], x[x.size() - 1]);
  const Tensor logits =
      tc::matmul(h.reshape({m.batch * m.length, m.width}), wte.t()).to(DType::f32);
  const Tensor loss = tc::cross_entropy(logits, target);
  return m.returns_hidden ? std::vector<Tensor>{loss, h} : std::vector<Tensor>{loss};
}

// The loss, then a gradient for each weight.
std::vector<Tensor> gpt2_gradients(const Gpt2& m, const std::vector<Tensor>& x) {
  const auto loss = [&](const std::vector<Tensor>& weights) {
    std::vector<Tensor> all = {x[0], x[1]};
    all.insert(all.end(), weights.begin(), weights.end());
    return gpt2(m, all)[0];
  };
  auto [value, gradients] =
      tc::value_and_grad(loss)(std::vector<Tensor>(x.begin() + 2, x.end()));
  gradients.insert(gradients.begin(), value);
  return gradients;
}

}  // namespace

GpuRow make_gpt2_row(const std::string& name, bool small) {
  const Gpt2 model = small ? kTiny : kFull;
  const bool with_gradients = name == "gpt2_fwdbwd";
  GpuRow row;
  row.name = name;
  row.what = tc::str("GPT-2 124M forward and loss, ",
                     with_gradients ? "and the gradients of all weights, " : "", "bf16, batch ",
                     model.batch, " x ", model.length, ", attention as matmul-softmax-matmul");
  row.exact = false;
  row.limit = 0.03;  // bf16 rounded at other places gives 0.008, no mask 0.43
  row.inputs = gpt2_inputs(model);
  row.prepare = [=](tc::CompileOptions options, const std::vector<Tensor>& x) {
    options.name = name;
    const auto f = tc::compile(
        [=](std::vector<Tensor> inputs) {
          return with_gradients ? gpt2_gradients(model, inputs) : gpt2(model, inputs);
        },
        options);
    Ready ready;
    ready.call = [=] { f(x); };
    ready.results = [=] { return f(x); };
    ready.graph = [=] { return f.specialization(x).traced.graph; };
    return ready;
  };
  return row;
}

}  // namespace bench
