// How is a model trained, so that it may be stopped anywhere? A step is a function of where the
// training is and of the step's number, and its windows are a function of seed and number:
//
//   (weights, moments, step 10)  =>  (loss of windows 10, weights', moments', step 11)
//
// Whoever has these values goes on bit for bit.
#include "tiny_compile/cli/trainer.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/math.h"
#include "tiny_compile/compile/compile.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"

namespace tiny_compile {
namespace {

constexpr double kBeta2 = 0.99;  // a step has few bytes: a shorter memory than PyTorch's 0.999
constexpr int64_t kMostSize = 1 << 20;
constexpr double kLastRate = 0.05, kWarmup = 0.05;  // shares of the peak rate and of the steps

nn::Adam optimiser_of(const Setup& setup) {
  nn::Adam adam = nn::adamw(setup.decay);
  adam.beta2 = kBeta2;
  adam.decayed_rank = 2;
  return adam;
}

nn::Rate rate_of(const Setup& setup) {
  const auto warmup = static_cast<int64_t>(kWarmup * static_cast<double>(setup.steps));
  return nn::warmup_cosine(setup.rate, warmup, setup.steps, kLastRate * setup.rate);
}

// Windows over what is held out, and which of their bytes count: the first window all that it
// has of it, each later one its second half.
struct HeldWindows {
  std::vector<int64_t> starts;
  std::vector<float> counts;  // [windows, context], 1 or 0
};

HeldWindows held_windows(const Corpus& corpus, int64_t context) {
  const auto end = static_cast<int64_t>(corpus.bytes.size());
  int64_t counted = static_cast<int64_t>(corpus.held_from);  // the next byte to be predicted
  const int64_t half = std::max<int64_t>(context / 2, 1);
  HeldWindows windows;
  while (counted < end) {
    const int64_t last = std::min(counted + half, end) - 1;  // the window's last prediction
    const int64_t start = last - context;
    windows.starts.push_back(start);
    for (int64_t k = 0; k < context; k++)
      windows.counts.push_back(start + k + 1 >= counted ? 1.f : 0.f);
    counted = last + 1;
  }
  return windows;
}

int64_t likeliest(const std::vector<float>& scores) {
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

// Place k with probability exp(scores[k] / temperature) / the sum of these.
int64_t drawn(const std::vector<float>& scores, double temperature, double uniform) {
  const float most = *std::max_element(scores.begin(), scores.end());
  std::vector<double> until;  // sums
  double sum = 0;
  for (const float score : scores)
    until.push_back(sum += std::exp(static_cast<double>(score - most) / temperature));
  const auto found = std::upper_bound(until.begin(), until.end(), uniform * sum);
  return std::min<int64_t>(found - until.begin(), static_cast<int64_t>(scores.size()) - 1);
}

}  // namespace

void check_setup(const Setup& setup) {
  const auto check = [](const char* name, int64_t value, int64_t most) {
    if (value < 1 || value > most)
      fail("--", name, "=", value, ": it must be at least 1 and at most ", most);
  };
  check("steps", setup.steps, 1000000000);
  check("batch", setup.batch, kMostSize);
  check("context", setup.shape.context, kMostSize);
  check("layers", setup.shape.layers, kMostSize);
  check("heads", setup.shape.heads, kMostSize);
  check("width", setup.shape.width, kMostSize);
  if (setup.shape.width % setup.shape.heads != 0)
    fail("--width=", setup.shape.width, " does not divide into --heads=", setup.shape.heads);
  if (!(setup.rate > 0) || !std::isfinite(setup.rate))
    fail("--rate=", setup.rate, ": it must be a number above 0");
  if (!(setup.decay >= 0) || !std::isfinite(setup.decay))
    fail("--decay=", setup.decay, ": it must be a number from 0 on");
  if (!(setup.clip > 0)) fail("--clip=", setup.clip, ": it must be above 0");
}

Training begin_training(const Setup& setup, Device device) {
  manual_seed(static_cast<uint64_t>(setup.seed));
  Training training{nn::to(nn::make_gpt(setup.shape), device), {}, {}};
  training.state = optimiser_of(setup).init(training.gpt);
  return training;
}

Trainer::Trainer(const Setup& setup, const Corpus& corpus, Device device,
                 CompileOptions options)
    : setup_(setup), corpus_(corpus), device_(device), rate_(rate_of(setup)) {
  const nn::Adam adam = optimiser_of(setup);
  const double clip = setup.clip;
  using State = nn::AdamState<nn::Gpt>;
  options.name = "train_step";
  options.donate = {0, 1};
  step_ = compile(
      [=](const nn::Gpt& gpt, const State& state, const Tensor& bytes, const Tensor& next,
          const Tensor& rate) {
        const auto [loss, gradient] = value_and_grad(nn::gpt_loss)(gpt, bytes, next);
        const auto [shorter, norm] = nn::clip_by_global_norm(gradient, clip);
        auto [moved, later] = adam.update(gpt, shorter, state, rate);
        return Stepped{loss, norm, moved, later};
      },
      options);
  options.name = "held_losses";
  options.donate = {};
  losses_ = compile(
      [](const nn::Gpt& gpt, const Tensor& bytes, const Tensor& next, const Tensor& counts) {
        const Tensor scores = flatten(nn::gpt_scores(gpt, bytes), 0, 1);
        return sum(cross_entropy(scores, flatten(next), Reduction::None) * flatten(counts));
      },
      options);
}

void Trainer::step(Training& training) const {
  const int64_t number = training.steps_done();
  const Batch batch = batch_at(corpus_, static_cast<uint64_t>(setup_.seed), number,
                               setup_.batch, setup_.shape.context);
  Stepped stepped = step_(training.gpt, training.state, batch.bytes.to(device_),
                          batch.next.to(device_), full({}, rate_(number), DType::f64));
  const float loss = stepped.loss.item<float>(), norm = stepped.norm.item<float>();
  if (!std::isfinite(loss) || !std::isfinite(norm))
    fail("training: in step ", number + 1, " the loss is ", loss, " and its gradient's norm ",
         norm, "; the steps grew too large: train with a lower --rate, or with --clip");
  training.gpt = std::move(stepped.gpt);
  training.state = std::move(stepped.state);
  training.losses.push_back(loss);
}

double Trainer::held_bits(const nn::Gpt& gpt) const {
  const int64_t context = setup_.shape.context;
  const HeldWindows windows = held_windows(corpus_, context);
  const auto all = static_cast<int64_t>(windows.starts.size());
  double nats = 0;
  for (int64_t row = 0; row < all; row += kHeldBatch) {
    std::vector<int64_t> starts;
    std::vector<float> counts;
    for (int64_t k = row; k < row + kHeldBatch; k++) {  // the last batch is filled up
      starts.push_back(windows.starts[static_cast<size_t>(std::min(k, all - 1))]);
      for (int64_t c = 0; c < context; c++)
        counts.push_back(k < all ? windows.counts[static_cast<size_t>(k * context + c)] : 0.f);
    }
    const Batch batch = windows_at(corpus_.bytes, starts, context);
    nats += losses_(gpt, batch.bytes.to(device_), batch.next.to(device_),
                    from_vector(counts, {kHeldBatch, context}).to(device_))
                .item<double>();
  }
  const auto bytes = static_cast<double>(corpus_.bytes.size() - corpus_.held_from);
  return nats / bytes / std::log(2.0);
}

std::string sample(const nn::Gpt& gpt, const std::string& prompt, int64_t bytes,
                   double temperature, uint64_t seed, Device device) {
  if (prompt.empty()) fail("sample: the prompt is empty; give at least one byte");
  if (!(temperature >= 0) || !std::isfinite(temperature))
    fail("sample: a temperature is a number from 0 on, not ", temperature);
  const auto scores = compile([](const nn::Gpt& g, const Tensor& b, const Tensor& place) {
    return index_select(nn::gpt_scores(g, b), 1, place);
  });
  const int64_t context = gpt.positions.weight.size(0);
  std::string text = prompt;
  for (int64_t k = 0; k < bytes; k++) {
    const int64_t length = std::min(context, static_cast<int64_t>(text.size()));
    std::vector<int64_t> window(static_cast<size_t>(context), 0);  // behind `length`: unseen
    std::transform(text.end() - length, text.end(), window.begin(),
                   [](char c) { return static_cast<unsigned char>(c); });
    const std::vector<float> row = scores(gpt, from_vector(window, {1, context}).to(device),
                                          from_vector<int64_t>({length - 1}).to(device))
                                       .to_vector<float>();
    const unsigned word = prelude::tc_philox(seed, 0, static_cast<uint64_t>(k));
    const int64_t next =
        temperature == 0 ? likeliest(row) : drawn(row, temperature, word * 0x1p-32);
    text.push_back(static_cast<char>(next));
  }
  return text;
}

}  // namespace tiny_compile
