// GPT-2's forward pass with its loss, with the gradients of all its weights, the whole step of
// training, and of that step its end alone, from gradients that are given; 124 M parameters: the
// largest graphs of the table. Attention is written out as matmul, softmax, matmul. Weights are
// random; arithmetic is bf16, the step's weights and AdamW's moments f32.
//
// A mean over all words hardly tells a wrong network: without its mask the loss is off by 1.6e-4.
// So the small instance has larger weights and returns the last hidden state too.
#include <algorithm>
#include <cmath>

#include "tests/bench/gpu_rows.h"
#include "tiny_compile/nn/optimiser.h"

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

Input& add_input(std::vector<Input>& inputs, DType dtype, tc::Sizes shape) {
  const uint32_t seed = static_cast<uint32_t>(inputs.size()) + 1;
  inputs.push_back(dense_input(dtype, std::move(shape), seed));
  return inputs.back();
}

// wte [V,C], wpe [T,C], 12 a layer, the last norm's two.
void add_weights(std::vector<Input>& inputs, const Gpt2& m, DType dtype) {
  const int64_t c = m.width;
  auto add = [&](tc::Sizes shape, float scale, float shift = 0) {
    Input& input = add_input(inputs, dtype, std::move(shape));
    input.scale = scale, input.shift = shift;
  };
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
}

// index [B,T], target [B*T], weights.
std::vector<Input> gpt2_inputs(const Gpt2& m, DType weights) {
  std::vector<Input> inputs;
  for (const tc::Sizes& shape : {tc::Sizes{m.batch, m.length}, tc::Sizes{m.batch * m.length}})
    add_input(inputs, DType::i64, shape).classes = m.words;
  add_weights(inputs, m, weights);
  return inputs;
}

// Those, AdamW's first and second moments, 0 as before the first step, and how many were made.
std::vector<Input> gpt2_step_inputs(const Gpt2& m) {
  std::vector<Input> inputs = gpt2_inputs(m, DType::f32);
  const size_t end = inputs.size();
  for (int moment = 0; moment < 2; moment++) {
    for (size_t k = 2; k < end; k++)
      add_input(inputs, DType::f32, tc::Sizes(inputs[k].shape)).scale = 0;
  }
  add_input(inputs, DType::i64, {}).classes = 1;
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

// The loss, and a gradient for each weight, which the network reads in bf16.
std::pair<Tensor, std::vector<Tensor>> loss_and_gradients(const Gpt2& m, const Tensor& index,
                                                          const Tensor& target,
                                                          const std::vector<Tensor>& weights) {
  const auto loss = [&](const std::vector<Tensor>& given) {
    std::vector<Tensor> all = {index, target};
    for (const Tensor& weight : given) all.push_back(weight.to(DType::bf16));
    return gpt2(m, all)[0];
  };
  return tc::value_and_grad(loss)(weights);
}

std::vector<Tensor> gpt2_gradients(const Gpt2& m, const std::vector<Tensor>& x) {
  auto [loss, gradients] = loss_and_gradients(m, x[0], x[1], {x.begin() + 2, x.end()});
  gradients.insert(gradients.begin(), loss);
  return gradients;
}

using Weights = std::vector<Tensor>;

// New weights, moments and the number of steps made, from gradients whose norm is at most 1 then.
Weights clipped_adamw(const Weights& weights, const tc::nn::AdamState<Weights>& state,
                      const Weights& gradients) {
  const Weights clipped = tc::nn::clip_by_global_norm(gradients, 1.0).first;
  const Tensor rate = tc::full({}, 1e-3, DType::f64);
  const auto [moved, later] = tc::nn::adamw(0.1).update(weights, clipped, state, rate);
  Weights results = moved;
  for (const Weights& each : {later.first, later.second})
    results.insert(results.end(), each.begin(), each.end());
  results.push_back(later.step);
  return results;
}

// Of tensors behind the first ones, in groups of `size`, group number k.
Weights group_of(const std::vector<Tensor>& x, size_t first, size_t size, size_t k) {
  const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first + k * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

// The loss, then what the optimiser makes.
std::vector<Tensor> gpt2_step(const Gpt2& m, const std::vector<Tensor>& x) {
  const auto part = [&](size_t k) { return group_of(x, 2, (x.size() - 3) / 3, k); };
  const auto [loss, gradients] = loss_and_gradients(m, x[0], x[1], part(0));
  Weights results = clipped_adamw(part(0), {part(1), part(2), x.back()}, gradients);
  results.insert(results.begin(), loss);
  return results;
}

// Weights, first and second moments, gradients, and how many steps were made.
std::vector<Input> clip_adamw_inputs(const Gpt2& m) {
  std::vector<Input> weights, inputs;
  add_weights(weights, m, DType::f32);
  const float scales[] = {0.1f, 0.1f, 0.04f, 0.5f};
  for (int kind = 0; kind < 4; kind++) {
    for (const Input& weight : weights) {
      Input& input = add_input(inputs, DType::f32, tc::Sizes(weight.shape));
      input.scale = scales[kind], input.shift = kind == 2 ? 0.05f : 0;
    }
  }
  add_input(inputs, DType::i64, {}).classes = 1;
  return inputs;
}

std::vector<Tensor> clip_adamw(const Gpt2&, const std::vector<Tensor>& x) {
  const auto part = [&](size_t k) { return group_of(x, 0, (x.size() - 1) / 4, k); };
  return clipped_adamw(part(0), {part(1), part(2), x.back()}, part(3));
}

struct Gpt2Row {
  const char *name, *what;
  // bf16 rounded at other places gives 0.008, no mask 0.43; a square has twice that; 0: no products
  double limit;
  std::vector<Tensor> (*function)(const Gpt2&, const std::vector<Tensor>&);
  std::vector<Input> (*inputs)(const Gpt2&);
};

std::vector<Input> half_inputs(const Gpt2& m) { return gpt2_inputs(m, DType::bf16); }

constexpr Gpt2Row kRows[] = {
    {"gpt2_fwd", "forward and loss, bf16", 0.03, gpt2, half_inputs},
    {"gpt2_fwdbwd", "forward, loss and the gradients of all weights, bf16", 0.03,
     gpt2_gradients, half_inputs},
    {"gpt2_step", "a step of training by AdamW, clipped, bf16 with f32 weights", 0.06,
     gpt2_step, gpt2_step_inputs},
    {"clip_adamw", "gradients clipped to a norm of 1 and AdamW, f32, each of 148 tensors", 0,
     clip_adamw, clip_adamw_inputs},
};

// Where there are no products: what the optimiser reads, and new weights and moments.
double bytes_of(const std::vector<Input>& inputs) {
  double elements = 0;
  for (const Input& input : inputs) elements += static_cast<double>(input.count);
  return 4 * elements * 7 / 4;
}

}  // namespace

std::vector<std::string> gpt2_row_names() {
  std::vector<std::string> names;
  for (const Gpt2Row& row : kRows) names.push_back(row.name);
  return names;
}

std::optional<GpuRow> make_gpt2_row(const std::string& name, bool small) {
  const Gpt2 model = small ? kTiny : kFull;
  const auto found = std::find_if(std::begin(kRows), std::end(kRows),
                                  [&](const Gpt2Row& row) { return name == row.name; });
  if (found == std::end(kRows)) return std::nullopt;
  GpuRow row;
  row.name = name;
  row.what = tc::str("GPT-2 124M ", found->what);
  row.exact = found->limit == 0;
  row.limit = found->limit;
  row.inputs = found->inputs(model);
  if (row.exact)
    row.bytes = bytes_of(row.inputs);
  else
    row.what += tc::str(", batch ", model.batch, " x ", model.length,
                        ", attention as matmul-softmax-matmul");
  row.prepare = [=, function = found->function](tc::CompileOptions options,
                                                const std::vector<Tensor>& x) {
    options.name = name;
    const auto f = tc::compile(
        [=](std::vector<Tensor> inputs) { return function(model, inputs); }, options);
    Ready ready;
    ready.call = [=] { f(x); };
    ready.results = [=] { return f(x); };
    ready.graph = [=] { return f.specialization(x).traced.graph; };
    return ready;
  };
  return row;
}

}  // namespace bench
