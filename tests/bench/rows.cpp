// What is measured? Each workload once as a user writes it with tc::compile, beside the peers
// on the same inputs, in buffers that are used again.
#include "tests/bench/rows.h"

#include <omp.h>

#include <array>
#include <cmath>

#include "tests/bench/eigen_peers.h"
#include "tests/bench/hand.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::Tensor;

constexpr int64_t kMany = int64_t{16} << 20;
constexpr double kAdamDecay = 1 - 1e-3 * 0.01;

// Uniform numbers in [low, high): fast, and the same in every run.
Tensor filled(tc::Sizes shape, float low = -3, float high = 3) {
  Tensor result = tc::empty_tensor(tc::DType::f32, std::move(shape));
  float* at = result.data<float>();
  uint64_t state = 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(result.numel());
  for (int64_t i = 0; i < result.numel(); i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    at[i] = low + (high - low) * static_cast<float>(state >> 40) * 0x1p-24f;
  }
  return result;
}

Tensor buffer(tc::Sizes shape) { return tc::empty_tensor(tc::DType::f32, std::move(shape)); }

float* values(const Tensor& tensor) { return tensor.data<float>(); }

template <typename Function, typename... Inputs>
void add_ours(Row& row, Function function, Inputs... inputs) {
  const auto compiled = tc::compile(function, {.name = row.name});
  row.contestants.push_back({"tiny_compile", [=](int) { compiled(inputs...); }, {}});
  row.trace = [=] { return compiled.specialization(inputs...); };
  const auto leaves = [=](const auto& f) {
    auto result = f(inputs...);
    std::vector<Tensor> tensors;
    tc::tree::for_each_tensor(result, [&](Tensor& tensor) { tensors.push_back(tensor); });
    return tensors;
  };
  row.compute = [=] { return leaves(compiled); };
  row.expect = [=] { return leaves(tc::compile(function, {.backend = "interpreter"})); };
}

template <typename Run>
void add_peer(Row& row, const std::string& name, const Tensor& out, Run run) {
  if (name == "eigen" && !eigen_peers::available()) return;
  row.contestants.push_back({name, run, out});
}

// The ceiling: a loop that only reads and writes as much.
void add_copy(Row& row, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) {
  std::vector<const float*> from;
  std::vector<float*> to;
  for (const Tensor& tensor : reads) from.push_back(values(tensor));
  for (const Tensor& tensor : writes) to.push_back(values(tensor));
  const long n = reads[0].numel();
  row.bytes = 4.0 * static_cast<double>(n * static_cast<long>(from.size() + to.size()));
  const std::vector<Tensor> alive = writes;
  add_peer(row, "copy", {}, [=](int threads) {
    volatile float sink = hand::copy(from, to, n, true, threads);
    (void)sink, (void)alive;
  });
}

void make_pointwise(Row& row) {
  row.what = "tanh(x*w + b)*sigmoid(x) + 0.5*x, 16 Mi";
  const Tensor x = filled({kMany}), w = filled({kMany}), b = filled({kMany}),
               out = buffer({kMany}), out2 = buffer({kMany});
  add_ours(
      row,
      [](Tensor x, Tensor w, Tensor b) {
        return tc::tanh(x * w + b) * tc::sigmoid(x) + 0.5 * x;
      },
      x, w, b);
  add_peer(row, "hand", out, [=](int threads) {
    hand::pointwise(values(x), values(w), values(b), values(out), kMany, threads);
  });
  add_peer(row, "eigen", out2, [=](int threads) {
    eigen_peers::pointwise(values(x), values(w), values(b), values(out2), kMany, threads);
  });
  add_copy(row, {x, w, b}, {out});
}

void make_bias_gelu(Row& row) {
  row.what = "gelu(x + bias), [4096,4096]";
  const Tensor x = filled({4096, 4096}), bias = filled({4096}), out = buffer({4096, 4096}),
               out2 = buffer({4096, 4096});
  add_ours(
      row, [](Tensor x, Tensor bias) { return tc::gelu(x + bias); }, x, bias);
  add_peer(row, "hand", out, [=](int threads) {
    hand::bias_gelu(values(x), values(bias), values(out), 4096, 4096, threads);
  });
  add_peer(row, "eigen", out2, [=](int threads) {
    eigen_peers::bias_gelu(values(x), values(bias), values(out2), 4096, 4096, threads);
  });
  add_copy(row, {x}, {out});
}

void make_softmax(Row& row) {
  row.what = "softmax(x, -1), [4096,4096]";
  const Tensor x = filled({4096, 4096}), out = buffer({4096, 4096}),
               out2 = buffer({4096, 4096});
  add_ours(
      row, [](Tensor x) { return tc::softmax(x, -1); }, x);
  add_peer(row, "hand", out,
           [=](int threads) { hand::softmax(values(x), values(out), 4096, 4096, threads); });
  add_peer(row, "eigen", out2, [=](int threads) {
    eigen_peers::softmax(values(x), values(out2), 4096, 4096, threads);
  });
  add_copy(row, {x}, {out});
}

void make_layernorm(Row& row) {
  row.what = "layer_norm(x) * weight + bias, [8192,1024]";
  constexpr int64_t kRows = 8192, kColumns = 1024;
  const Tensor x = filled({kRows, kColumns}), weight = filled({kColumns}),
               bias = filled({kColumns}), out = buffer({kRows, kColumns}),
               out2 = buffer({kRows, kColumns});
  add_ours(
      row,
      [](Tensor x, Tensor weight, Tensor bias) {
        return tc::layer_norm(x, {1024}, weight, bias);
      },
      x, weight, bias);
  add_peer(row, "hand", out, [=](int threads) {
    hand::layer_norm(values(x), values(weight), values(bias), values(out), kRows, kColumns,
                     1e-5f, threads);
  });
  add_peer(row, "eigen", out2, [=](int threads) {
    eigen_peers::layer_norm(values(x), values(weight), values(bias), values(out2), kRows,
                            kColumns, 1e-5f, threads);
  });
  add_copy(row, {x}, {out});
}

void make_mse(Row& row) {
  row.what = "mean((a - b)^2), 16 Mi";
  const Tensor a = filled({kMany}), b = filled({kMany}, -2, 2), out = buffer({}),
               out2 = buffer({});
  add_ours(
      row, [](Tensor a, Tensor b) { return tc::mse_loss(a, b); }, a, b);
  add_peer(row, "hand", out, [=](int threads) {
    *values(out) = hand::mse(values(a), values(b), kMany, threads);
  });
  add_peer(row, "eigen", out2, [=](int threads) {
    *values(out2) = eigen_peers::mse(values(a), values(b), kMany, threads);
  });
  add_copy(row, {a, b}, {});
}

void make_adamw(Row& row) {
  row.what = "AdamW's update of 16 Mi parameters, three outputs";
  const Tensor p = filled({kMany}), m = filled({kMany}, -0.1f, 0.1f),
               v = filled({kMany}, 0.01f, 0.1f), g = filled({kMany}, -1, 1);
  std::vector<Tensor> out;
  for (int k = 0; k < 3; k++) out.push_back(buffer({kMany}));
  const hand::AdamW settings{.step = 3};
  const double rate = 1e-3 / (1 - std::pow(double(settings.beta1), settings.step)),
               root = 1 / std::sqrt(1 - std::pow(double(settings.beta2), settings.step));
  add_ours(
      row,
      [=](Tensor p, Tensor m, Tensor v, Tensor g) {
        Tensor first = m * 0.9 + g * (1 - 0.9), second = v * 0.999 + g * g * (1 - 0.999);
        Tensor next = p * kAdamDecay - rate * first / (tc::sqrt(second) * root + 1e-8);
        return std::array<Tensor, 3>{next, first, second};
      },
      p, m, v, g);
  const auto peer = [=](auto update, int threads) {
    update(settings, values(p), values(m), values(v), values(g), values(out[0]), values(out[1]),
           values(out[2]), kMany, threads);
  };
  add_peer(row, "hand", out[0], [=](int threads) { peer(hand::adamw, threads); });
  add_peer(row, "eigen", out[0], [=](int threads) { peer(eigen_peers::adamw, threads); });
  add_copy(row, {p, m, v, g}, out);
}

void make_transpose_add(Row& row) {
  row.what = "x.t() + y, [4096,4096]";
  constexpr int64_t kSide = 4096;
  const Tensor x = filled({kSide, kSide}), y = filled({kSide, kSide}, 0, 1),
               out = buffer({kSide, kSide});
  add_ours(
      row, [](Tensor x, Tensor y) { return x.t() + y; }, x, y);
  add_peer(row, "hand", out, [=](int threads) {
    hand::transpose_add(values(x), values(y), values(out), kSide, kSide, threads);
  });
  add_copy(row, {x, y}, {out});
}

void make_colsum(Row& row) {
  row.what = "x.sum(0), [4096,4096]";
  const Tensor x = filled({4096, 4096}), out = buffer({4096});
  add_ours(
      row, [](Tensor x) { return x.sum(0); }, x);
  add_peer(row, "hand", out, [=](int threads) {
    hand::column_sums(values(x), values(out), 4096, 4096, threads);
  });
  add_copy(row, {x}, {});
}

void make_mlp(Row& row) {
  row.what = "256x784 -> relu 1024 -> relu 1024 -> 10, log_softmax; copy: the matmuls alone";
  const Tensor x = filled({256, 784}, -1, 1), w1 = filled({784, 1024}, -0.05f, 0.05f),
               b1 = filled({1024}, -1, 1), w2 = filled({1024, 1024}, -0.05f, 0.05f),
               b2 = filled({1024}, -1, 1), w3 = filled({1024, 10}, -0.05f, 0.05f),
               b3 = filled({10}, -1, 1);
  add_ours(
      row,
      [](Tensor x, Tensor w1, Tensor b1, Tensor w2, Tensor b2, Tensor w3, Tensor b3) {
        Tensor h = tc::relu(tc::matmul(x, w1) + b1);
        h = tc::relu(tc::matmul(h, w2) + b2);
        return tc::log_softmax(tc::matmul(h, w3) + b3, -1);
      },
      x, w1, b1, w2, b2, w3, b3);
  const hand::Mlp model{values(x),  values(w1), values(b1), values(w2),
                        values(b2), values(w3), values(b3)};
  const Tensor out = buffer({256, 10}), out2 = buffer({256, 10}), out3 = buffer({256, 10}),
               room = buffer({2 * 256 * 1024});
  row.flops = 2.0 * 256 * (784 * 1024 + 1024 * 1024 + 1024 * 10);
  if (hand::has_openblas()) {
    add_peer(row, "hand", out,
             [=](int threads) { hand::mlp(model, values(room), values(out), threads); });
    add_peer(row, "openblas", {}, [=](int threads) {
      hand::mlp_matmuls_alone(model, values(room), values(out3), threads);
    });
  }
  add_peer(row, "eigen", out2,
           [=](int threads) { eigen_peers::mlp(model, values(room), values(out2), threads); });
}

void make_tiny_chain(Row& row) {
  row.what = "ten times y = y*1.01 + 0.1, [64]";
  row.threaded = false;
  const Tensor x = filled({64}), out = buffer({64});
  row.bytes = 2 * 64 * 4;
  add_ours(
      row,
      [](Tensor x) {
        for (int step = 0; step < 10; step++) x = x * 1.01 + 0.1;
        return x;
      },
      x);
  add_peer(row, "hand", out, [=](int) { hand::tiny_chain(values(x), values(out), 64); });
}

struct Maker {
  const char* name;
  void (*make)(Row&);
};

constexpr Maker kMakers[] = {{"pointwise", make_pointwise},
                             {"bias_gelu", make_bias_gelu},
                             {"softmax", make_softmax},
                             {"layernorm", make_layernorm},
                             {"mse", make_mse},
                             {"adamw", make_adamw},
                             {"transpose_add", make_transpose_add},
                             {"colsum", make_colsum},
                             {"mlp", make_mlp},
                             {"tiny_chain", make_tiny_chain}};

}  // namespace

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.push_back(maker.name);
  return names;
}

Row make_row(const std::string& name) {
  for (const Maker& maker : kMakers) {
    if (name != maker.name) continue;
    Row row;
    row.name = name;
    maker.make(row);
    return row;
  }
  tc::fail("no row '", name, "': there are ", tc::join(row_names(), ", "), " and slope");
}

}  // namespace bench
