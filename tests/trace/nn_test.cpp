#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/windows.h"

#include <algorithm>

#include "tests/trace/agree.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor random(const Sizes& shape, uint64_t seed) {
  manual_seed(seed);
  return randn(shape);
}

Values values(const Tensor& tensor) { return tensor.to_vector<double>(); }

Values map(const Values& x, const std::function<double(double)>& function) {
  Values y;
  for (const double value : x) y.push_back(function(value));
  return y;
}

// The function of each row of `width` values, joined.
Values by_rows(const Values& x, size_t width, const std::function<Values(Values)>& function) {
  Values y;
  for (size_t at = 0; at < x.size(); at += width) {
    const Values row = function(Values(x.begin() + at, x.begin() + at + width));
    y.insert(y.end(), row.begin(), row.end());
  }
  return y;
}

double total(const Values& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum;
}

double mean_of(const Values& x) { return total(x) / static_cast<double>(x.size()); }

double variance_of(const Values& x, int correction) {
  const double mean = mean_of(x);
  return total(map(x, [&](double v) { return (v - mean) * (v - mean); })) /
         (static_cast<double>(x.size()) - correction);
}

double log_sum_of(const Values& x) {
  const double most = *std::max_element(x.begin(), x.end());
  if (std::isinf(most)) return most;
  return most + std::log(total(map(x, [&](double v) { return std::exp(v - most); })));
}

Values softmax_of(const Values& x) {
  const double log_sum = log_sum_of(x);
  return map(x, [&](double v) { return std::exp(v - log_sum); });
}

Values log_softmax_of(const Values& x) {
  const double log_sum = log_sum_of(x);
  return map(x, [&](double v) { return v - log_sum; });
}

// [rows, inner] times [inner, columns]
Values product(const Values& a, const Values& b, size_t inner, size_t columns) {
  Values y(a.size() / inner * columns);
  for (size_t at = 0; at < y.size(); at++) {
    for (size_t k = 0; k < inner; k++)
      y[at] += a[at / columns * inner + k] * b[k * columns + at % columns];
  }
  return y;
}

Values transposed(const Values& x, size_t columns) {  // [rows, columns] -> [columns, rows]
  const size_t rows = x.size() / columns;
  Values y(x.size());
  for (size_t at = 0; at < x.size(); at++) y[at % columns * rows + at / columns] = x[at];
  return y;
}

// softmax(q k^T / sqrt(E) + bias) v of one head
Values attention_of(const Values& q, const Values& k, const Values& v, size_t width,
                    size_t value_width, double factor, const Values& bias) {
  const size_t keys = k.size() / width;
  Values scores = product(q, transposed(k, width), width, keys);
  for (size_t i = 0; i < scores.size(); i++) scores[i] = scores[i] * factor + bias[i];
  return product(by_rows(scores, keys, softmax_of), v, keys, value_width);
}

struct Convolution {
  int64_t n, c, h, w, o, kh, kw, stride, padding, dilation, groups;
  int64_t out(int64_t size, int64_t kernel) const {
    return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
  Sizes shape() const { return {n, o, out(h, kh), out(w, kw)}; }
};

double convolved(const Convolution& p, const Values& x, const Values& w, int64_t n, int64_t o,
                 int64_t row, int64_t column) {
  const int64_t channels = p.c / p.groups, group = o / (p.o / p.groups);
  double sum = 0;
  for (int64_t at = 0; at < channels * p.kh * p.kw; at++) {
    const int64_t c = at / (p.kh * p.kw), i = at / p.kw % p.kh, j = at % p.kw;
    const int64_t y = row * p.stride + i * p.dilation - p.padding;
    const int64_t z = column * p.stride + j * p.dilation - p.padding;
    if (y < 0 || y >= p.h || z < 0 || z >= p.w) continue;
    sum += w[o * channels * p.kh * p.kw + at] *
           x[((n * p.c + group * channels + c) * p.h + y) * p.w + z];
  }
  return sum;
}

Values convolution_of(const Convolution& p, const Values& x, const Values& w,
                      const Values& bias) {
  Values y;
  const Sizes shape = p.shape();
  for (int64_t at = 0; at < element_count(shape); at++) {
    const int64_t column = at % shape[3], row = at / shape[3] % shape[2];
    const int64_t o = at / shape[3] / shape[2] % p.o, n = at / shape[3] / shape[2] / p.o;
    y.push_back(convolved(p, x, w, n, o, row, column) + bias[o]);
  }
  return y;
}

void check_fails(const std::function<void()>& action, const std::string& says) {
  const std::string message = message_of(action);
  INFO(message);
  CHECK_THAT(message, ContainsSubstring("nn_test.cpp:"));
  CHECK_THAT(message, ContainsSubstring(says));
}

}  // namespace

TEST_CASE("activations agree with their formulas", "[nn]") {
  const Tensor x = random({7, 13}, 1) * 4.;
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{gelu(x),
                                   gelu(x, "tanh"),
                                   silu(x),
                                   softplus(x),
                                   relu(x),
                                   sigmoid(x),
                                   tanh(x),
                                   clamp(x, -1, 2),
                                   clamp(x, {}, .5),
                                   softplus(x * 40),
                                   silu(x.to(bfloat16))};
      },
      x);
  const std::vector<std::function<double(double)>> formulas = {
      [](double v) { return v / 2 * std::erfc(-v / std::sqrt(2.)); },
      [](double v) {
        return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
      },
      [](double v) { return v / (1 + std::exp(-v)); },
      [](double v) { return std::log1p(std::exp(v)); },
      [](double v) { return std::max(v, 0.); },
      [](double v) { return 1 / (1 + std::exp(-v)); },
      [](double v) { return std::tanh(v); },
      [](double v) { return std::clamp(v, -1., 2.); },
      [](double v) { return std::min(v, .5); },
      [](double v) { return v > 10 ? 40 * v : std::log1p(std::exp(40 * v)); }};
  for (size_t i = 0; i < formulas.size(); i++) {
    INFO("output " << i);
    check_near(y[i], {7, 13}, map(values(x), formulas[i]));
  }
  CHECK(y[10].dtype() == bfloat16);
  check_near(y[10], {7, 13}, map(values(x.to(bfloat16)), formulas[2]), 1. / 256);
  check_fails([&] { gelu(x, "quick"); }, "quick");
}

TEST_CASE("gelu_backward is the derivative of gelu, times what comes back", "[nn]") {
  const Tensor x = random({7, 13}, 1) * 3., grad = random({7, 13}, 2);
  for (const char* approximate : {"none", "tanh"}) {
    INFO("approximate = " << approximate);
    auto gelu_at = [&](const Tensor& at) { return values(gelu(at, approximate)); };
    const Tensor wide = x.to(float64);
    const double step = 1e-5;
    const Values above = gelu_at(wide + step), below = gelu_at(wide - step);
    Values want = values(grad);
    for (size_t k = 0; k < want.size(); k++) want[k] *= (above[k] - below[k]) / (2 * step);
    auto backward = [&](Tensor g, Tensor x) {
      return std::vector<Tensor>{gelu_backward(g, x, approximate)};
    };
    check_near(agreed(backward, grad.to(float64), wide)[0], {7, 13}, want, 1e-8);
    check_near(agreed(backward, grad, x)[0], {7, 13}, want);
    const Tensor half_grad = grad.to(bfloat16), half_x = x.to(bfloat16);
    const Tensor half = agreed(backward, half_grad, half_x)[0];
    CHECK(half.dtype() == bfloat16);  // computed in f32, rounded once
    check_near(half, {7, 13},
               values(gelu_backward(half_grad.to(float64), half_x.to(float64), approximate)),
               1. / 256);
  }
  CHECK(gelu_backward(grad.to(bfloat16), x).dtype() == float32);
  check_fails([&] { gelu_backward(grad, x, "quick"); }, "quick");
}

TEST_CASE("activations of NaN and infinities", "[nn]") {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{relu(x), silu(x), softplus(x), clamp(x, -1, 1), sigmoid(x)};
      },
      tensor({kNan, kInfinity, -kInfinity}));
  check_near(y[0], {3}, {kNan, kInfinity, 0});
  check_near(y[1], {3}, {kNan, kInfinity, 0});  // the limit, as of gelu; PyTorch has NaN
  check_near(y[2], {3}, {kNan, kInfinity, 0});
  check_near(y[3], {3}, {kNan, 1, -1});
  check_near(y[4], {3}, {kNan, 1, 0});
}

TEST_CASE("softmax, log_softmax and logsumexp, rows short and ragged", "[nn]") {
  for (const Sizes& shape : std::vector<Sizes>{{3, 1}, {5, 7}, {2, 1025}}) {
    const Tensor x = random(shape, 2) * 10.;
    const auto y = agreed(
        [](Tensor x) {
          return std::vector<Tensor>{softmax(x, -1),        log_softmax(x, 1),
                                     logsumexp(x, {1}),     logsumexp(x, {-1}, true),
                                     softmax(x.t(), 0).t(), softmax(x.to(bfloat16), -1)};
        },
        x);
    const size_t width = static_cast<size_t>(shape[1]);
    const Values soft = by_rows(values(x), width, softmax_of);
    const Values sums =
        by_rows(values(x), width, [](const Values& row) { return Values{log_sum_of(row)}; });
    check_near(y[0], shape, soft);
    check_near(y[1], shape, by_rows(values(x), width, log_softmax_of));
    check_near(y[2], {shape[0]}, sums);
    check_near(y[3], {shape[0], 1}, sums);
    CHECK(same_bits(y[4].contiguous(), y[0]));
    CHECK(y[5].dtype() == bfloat16);
    check_near(y[5], shape, by_rows(values(x.to(bfloat16)), width, softmax_of), 1. / 256);
  }
}

TEST_CASE("rows of infinities: softmax NaN, logsumexp -inf or inf, as PyTorch's", "[nn]") {
  const Tensor x = tensor({-kInfinity, -kInfinity, 0., -kInfinity, kInfinity, 0., kNan, 0.})
                       .to(float32)
                       .reshape({4, 2});
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{softmax(x, 1), logsumexp(x, {1}), log_softmax(x, 1),
                                   logsumexp(x, {0, 1})};
      },
      x);
  check_near(y[0], {4, 2}, {kNan, kNan, 1, 0, kNan, 0, kNan, kNan});
  check_near(y[1], {4}, {-kInfinity, 0, kInfinity, kNan});
  check_near(y[2].slice(0, 0, 2), {2, 2}, {kNan, kNan, 0, -kInfinity});
  check_near(y[3], {}, {kNan});
}

TEST_CASE("layer_norm and rms_norm", "[nn]") {
  const Tensor x = random({5, 3, 11}, 3) + 3., w = random({11}, 4), b = random({11}, 5);
  const auto y = agreed(
      [](Tensor x, Tensor w, Tensor b) {
        return std::vector<Tensor>{layer_norm(x, {11}, w, b), layer_norm(x, {3, 11}),
                                   rms_norm(x, {11}, w), rms_norm(x, {11}, {}, .5),
                                   layer_norm(x.to(float16), {11}, w, b)};
      },
      x, w, b);
  const Values ws = values(w), bs = values(b);
  auto norm = [](const Values& row) {
    const double mean = mean_of(row), scale = 1 / std::sqrt(variance_of(row, 0) + 1e-5);
    return map(row, [&](double v) { return (v - mean) * scale; });
  };
  auto affine = [&](Values row) {
    for (size_t i = 0; i < row.size(); i++) row[i] = row[i] * ws[i] + bs[i];
    return row;
  };
  auto rms = [](const Values& row, double eps) {
    const double square = mean_of(map(row, [](double v) { return v * v; }));
    return map(row, [&](double v) { return v / std::sqrt(square + eps); });
  };
  auto scaled = [&](const Values& row) {
    Values result = rms(row, 1e-6);
    for (size_t i = 0; i < row.size(); i++) result[i] *= ws[i];
    return result;
  };
  auto full_norm = [&](const Values& row) { return affine(norm(row)); };
  check_near(y[0], x.shape(), by_rows(values(x), 11, full_norm), 4e-6);
  check_near(y[1], x.shape(), by_rows(values(x), 33, norm), 4e-6);
  check_near(y[2], x.shape(), by_rows(values(x), 11, scaled));
  check_near(y[3], x.shape(), by_rows(values(x), 11, [&](auto r) { return rms(r, .5); }));
  CHECK(y[4].dtype() == float16);
  check_near(y[4], x.shape(), by_rows(values(x.to(float16)), 11, full_norm), 1e-3);
  check_fails([&] { layer_norm(x, {3}); }, "[3]");
  check_fails([&] { rms_norm(x, {}); }, "normalized_shape");
  check_fails([&] { layer_norm(x, {11}, random({3}, 1)); }, "[3]");
}

TEST_CASE("batch_norm of axis 1 with given statistics", "[nn]") {
  const Tensor x = random({3, 5, 7}, 6), mean = random({5}, 7), w = random({5}, 8);
  const Tensor variance = square(random({5}, 9)), b = random({5}, 10);
  const auto y = agreed(
      [](Tensor x, Tensor m, Tensor v, Tensor w, Tensor b) {
        return std::vector<Tensor>{batch_norm(x, m, v, w, b), batch_norm(x, m, v, {}, {}, .1)};
      },
      x, mean, variance, w, b);
  Values full = values(x), plain = full;
  for (size_t i = 0; i < full.size(); i++) {
    const size_t c = i / 7 % 5;
    const double centred = full[i] - values(mean)[c], v = values(variance)[c];
    full[i] = centred / std::sqrt(v + 1e-5) * values(w)[c] + values(b)[c];
    plain[i] = centred / std::sqrt(v + .1);
  }
  check_near(y[0], x.shape(), full, 5e-6);
  check_near(y[1], x.shape(), plain);
  check_fails([&] { batch_norm(random({4}, 1), mean, variance); }, "channel");
}

TEST_CASE("mean, var and std correct by one, as PyTorch's", "[nn]") {
  const Tensor x = random({4, 1031}, 12) + 5.;
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{mean(x, {1}),
                                   var(x, {1}),
                                   var(x, {1}, 0, true),
                                   tiny_compile::std(x, {-1}),
                                   var(x),
                                   var(x.slice(1, 0, 1), {1}),
                                   var(x.to(float64), {1}, 2)};
      },
      x);
  auto rows = [&](const std::function<double(Values)>& function) {
    return by_rows(values(x), 1031, [&](const Values& r) { return Values{function(r)}; });
  };
  check_near(y[0], {4}, rows(mean_of));
  check_near(y[1], {4}, rows([](Values r) { return variance_of(r, 1); }));
  check_near(y[2], {4, 1}, rows([](Values r) { return variance_of(r, 0); }));
  check_near(y[3], {4}, rows([](Values r) { return std::sqrt(variance_of(r, 1)); }));
  check_near(y[4], {}, {variance_of(values(x), 1)});
  check_near(y[5], {4}, {kNan, kNan, kNan, kNan});
  check_near(y[6], {4}, rows([](Values r) { return variance_of(r, 2); }), 1e-12);
}

TEST_CASE("linear, with and without a bias", "[nn]") {
  const Tensor x = random({3, 5, 7}, 13), w = random({4, 7}, 14), b = random({4}, 15);
  const auto y = agreed(
      [](Tensor x, Tensor w, Tensor b) {
        return std::vector<Tensor>{linear(x, w), linear(x, w, b), linear(x[0][0], w, b),
                                   linear(x.slice(0, 0, 0), w)};
      },
      x, w, b);
  const Values plain = product(values(x), transposed(values(w), 7), 7, 4);
  Values biased = plain;
  for (size_t i = 0; i < biased.size(); i++) biased[i] += values(b)[i % 4];
  check_near(y[0], {3, 5, 4}, plain);
  check_near(y[1], {3, 5, 4}, biased);
  check_near(y[2], {4}, Values(biased.begin(), biased.begin() + 4));
  check_near(y[3], {0, 5, 4}, {});
  check_fails([&] { linear(x, w.t()); }, "[7,4]");
  check_fails([&] { linear(x, w, random({3}, 1)); }, "[3]");
}

TEST_CASE("mse_loss, nll_loss and cross_entropy", "[nn]") {
  const Tensor x = random({5, 7}, 16) * 5., z = random({5, 7}, 17);
  const Tensor target = tensor({6, 0, -100, 3, 3});
  const auto y = agreed(
      [](Tensor x, Tensor z, Tensor target) {
        return std::vector<Tensor>{mse_loss(x, z),
                                   mse_loss(x, z, Reduction::Sum),
                                   mse_loss(x, z, Reduction::None),
                                   cross_entropy(x, target),
                                   cross_entropy(x, target, Reduction::Sum),
                                   cross_entropy(x, target, Reduction::None),
                                   nll_loss(log_softmax(x, 1), target),
                                   cross_entropy(x, relu(target).to(int32), Reduction::Mean, 3),
                                   cross_entropy(x.to(bfloat16), target),
                                   cross_entropy(x, target * 0 - 100)};
      },
      x, z, target);
  Values squares = values(x), losses;
  for (size_t i = 0; i < squares.size(); i++)
    squares[i] = std::pow(squares[i] - values(z)[i], 2);
  const Values scores = by_rows(values(x), 7, log_softmax_of);
  for (const size_t at : {6, 7, -1, 24, 31}) losses.push_back(at < 35 ? -scores[at] : 0);
  check_near(y[0], {}, {mean_of(squares)});
  check_near(y[1], {}, {total(squares)});
  check_near(y[2], {5, 7}, squares);
  check_near(y[3], {}, {total(losses) / 4});
  check_near(y[4], {}, {total(losses)});
  check_near(y[5], {5}, losses);
  CHECK(same_bits(y[6], y[3]));
  CHECK(y[8].dtype() == bfloat16);
  check_near(y[7], {}, {-(scores[6] + scores[7] + scores[14]) / 3});
  check_near(y[8], {}, {total(losses) / 4}, .05);
  check_near(y[9], {}, {kNan});
  check_fails([&] { cross_entropy(x, tensor({1, 2})); }, "[2]");
  check_fails([&] { cross_entropy(x, zeros({5})); }, "integers");
  check_fails([&] { nll_loss(x[0], target); }, "[7]");
  check_fails([&] { mse_loss(x, random({5, 6}, 1)); }, "[5,6]");
}

TEST_CASE("a class out of range is an error when the loss is read", "[nn]") {
  const Tensor x = random({2, 3}, 1);
  CHECK_THAT(message_of([&] {
               cross_entropy(x, tensor({0, 3})).item<float>();
             }),
             ContainsSubstring("out of range"));
}

TEST_CASE("dropout keeps 1 - p of the values, scaled by 1 / (1 - p)", "[nn]") {
  const Tensor x = ones({101, 103});
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{dropout(x, .25),       dropout(x, .25),
                                   dropout(x, 0),         dropout(x, 1),
                                   dropout(x, .5, false), dropout(x.to(bfloat16), .5)};
      },
      x);
  int64_t kept = 0;
  for (const float value : y[0].to_vector<float>()) {
    if (value != 0) CHECK(value == 1 / .75f);
    kept += value != 0;
  }
  CHECK(std::abs(static_cast<double>(kept) / (101 * 103) - .75) < .02);
  CHECK_FALSE(same_bits(y[0], y[1]));  // two draws
  CHECK(same_bits(y[2], x));
  CHECK(same_bits(y[3], zeros({101, 103})));
  CHECK(same_bits(y[4], x));
  CHECK(y[5].dtype() == bfloat16);
  CHECK(max(y[5]).item<float>() == 2);
  check_fails([&] { dropout(x, 1.5); }, "1.5");
}

TEST_CASE("scaled_dot_product_attention: plain, causal, masks and scale", "[nn]") {
  const Tensor q = random({2, 3, 5, 4}, 18), k = random({2, 3, 7, 4}, 19),
               v = random({2, 3, 7, 6}, 20), bias = random({5, 7}, 21);
  const auto y = agreed(
      [](Tensor q, Tensor k, Tensor v, Tensor bias) {
        return std::vector<Tensor>{scaled_dot_product_attention(q, k, v),
                                   scaled_dot_product_attention(q, k, v, {}, true),
                                   scaled_dot_product_attention(q, k, v, bias),
                                   scaled_dot_product_attention(q, k, v, bias > -1, false, .3)};
      },
      q, k, v, bias);
  const Values none(35, 0), added = values(bias);
  Values causal = none, chosen = none;
  for (size_t i = 0; i < 35; i++) {
    if (i % 7 > i / 7) causal[i] = -kInfinity;
    if (!(added[i] > -1)) chosen[i] = -kInfinity;
  }
  const Values* biases[] = {&none, &causal, &added, &chosen};
  for (size_t i = 0; i < 4; i++) {
    Values expected;
    for (int64_t head = 0; head < 6; head++) {
      const Values one =
          attention_of(values(q[head / 3][head % 3]), values(k[head / 3][head % 3]),
                       values(v[head / 3][head % 3]), 4, 6, i == 3 ? .3 : .5, *biases[i]);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    INFO("variant " << i);
    check_near(y[i], {2, 3, 5, 6}, expected, 4e-6);
  }
  check_fails([&] { scaled_dot_product_attention(q, v, v); }, "4 and 6");
  check_fails([&] { scaled_dot_product_attention(bias[0], k, v); }, "two axes");
}

TEST_CASE("conv2d: stride, padding, dilation and groups", "[nn]") {
  for (const Convolution& p : std::vector<Convolution>{{2, 3, 7, 5, 4, 3, 3, 1, 0, 1, 1},
                                                       {1, 2, 8, 9, 3, 3, 2, 2, 1, 1, 1},
                                                       {2, 4, 9, 7, 6, 3, 3, 1, 2, 2, 2},
                                                       {1, 3, 4, 4, 3, 1, 1, 3, 0, 1, 3}}) {
    const Tensor x = random({p.n, p.c, p.h, p.w}, 22), b = random({p.o}, 24),
                 w = random({p.o, p.c / p.groups, p.kh, p.kw}, 23);
    const auto y = agreed(
        [p](Tensor x, Tensor w, Tensor b) {
          return std::vector<Tensor>{
              conv2d(x, w, b, p.stride, p.padding, p.dilation, p.groups)};
        },
        x, w, b);
    check_near(y[0], p.shape(), convolution_of(p, values(x), values(w), values(b)), 4e-6);
  }
  const Tensor x = random({1, 2, 4, 4}, 1);
  check_fails([&] { conv2d(x, random({3, 3, 2, 2}, 1)); }, "[3,3,2,2]");
  check_fails([&] { conv2d(x, random({3, 2, 5, 2}, 1)); }, "5");
  check_fails([&] { conv2d(x, random({3, 2, 2, 2}, 1), {}, 0); }, "step");
}
