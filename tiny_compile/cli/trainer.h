// Training of a byte-level GPT: what it is made of, a step, its measure, and its checkpoint.
//
//   Training t = begin_training(setup, device);
//   const Trainer trainer(setup, corpus, device);
//   while (t.steps_done() < setup.steps) trainer.step(t);  // one compiled call each
//   trainer.held_bits(t.gpt);                              // bits a byte of what it has not seen
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/cli/corpus.h"
#include "tiny_compile/compile/compile.h"
#include "tiny_compile/nn/gpt.h"
#include "tiny_compile/nn/optimiser.h"
#include "tiny_compile/nn/schedule.h"

namespace tiny_compile {

// What a training's result depends on, beside its text.
struct Setup {
  nn::GptShape shape{.vocabulary = 256, .context = 128, .layers = 2, .heads = 4, .width = 128};
  int64_t steps = 3000, batch = 8, seed = 1;
  double rate = 3e-3, decay = 0.1, clip = 1;
};

// Throws tc::Error for numbers that no training can have.
void check_setup(const Setup& setup);

// Where it is, all of it: with the setup and the text, what comes next follows.
struct Training {
  nn::Gpt gpt;
  nn::AdamState<nn::Gpt> state;
  std::vector<float> losses;  // of each step, in nats
  int64_t steps_done() const { return static_cast<int64_t>(losses.size()); }
};

Training begin_training(const Setup& setup, Device device);

struct Stepped {
  Tensor loss, norm;  // of the gradient, before it was clipped
  nn::Gpt gpt;
  nn::AdamState<nn::Gpt> state;
};

class Trainer {
 public:
  Trainer(const Setup& setup, const Corpus& corpus, Device device, CompileOptions options = {});

  // One step further. Throws tc::Error, and leaves the training as it was, where the loss is no
  // finite number.
  void step(Training& training) const;
  // Each held-out byte once, seen behind at least half a context, and the mean of their losses.
  double held_bits(const nn::Gpt& gpt) const;

 private:
  static constexpr int64_t kHeldBatch = 16;  // windows at once
  Setup setup_;
  const Corpus& corpus_;
  Device device_;
  nn::Rate rate_;
  std::function<Stepped(const nn::Gpt&, const nn::AdamState<nn::Gpt>&, const Tensor& bytes,
                        const Tensor& next, const Tensor& rate)>
      step_;
  std::function<Tensor(const nn::Gpt&, const Tensor& bytes, const Tensor& next,
                       const Tensor& counts)>
      losses_;
};

// `bytes` more bytes behind the prompt, each drawn in proportion to p^(1 / temperature); 0 takes the
// likeliest. The same for the same seed. Throws tc::Error for an empty prompt.
std::string sample(const nn::Gpt& gpt, const std::string& prompt, int64_t bytes,
                   double temperature, uint64_t seed, Device device);

}  // namespace tiny_compile
