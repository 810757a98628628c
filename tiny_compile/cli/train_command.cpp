// What does a training show, and what does it leave?
//
//   build/train --steps=3000   =>   bits a byte as they fall, a curve, a sample of text,
//                                   build/gpt.safetensors and build/gpt.svg
#include "tiny_compile/cli/train_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <new>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/output_file.h"
#include "tiny_compile/cli/checkpoint.h"
#include "tiny_compile/cli/loss_curve.h"
#include "tiny_compile/cli/train_options.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_driver.h"

namespace tiny_compile {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Device device_of(const TrainOptions& options) {
  const std::string missing = why_no_gpu();
  if (options.device == "cuda" && !missing.empty()) fail("--device=cuda: ", missing);
  return options.device == "cpu" || !missing.empty() ? cpu : cuda;
}

double mean_bits(const std::vector<float>& losses, size_t last) {
  const size_t count = std::min(last, losses.size());
  double sum = 0;
  for (size_t k = losses.size() - count; k < losses.size(); k++) sum += losses[k];
  return count ? sum / static_cast<double>(count) / std::log(2.0) : 0;
}

// A bar on the standard error, where that is a terminal; else a line a tenth of the way.
class Progress {
 public:
  Progress(const Setup& setup, std::ostream& out)
      : setup_(setup), out_(out), is_terminal_(isatty(STDERR_FILENO)) {}

  // Behind a step that took so many seconds.
  void show(const Training& training, double seconds) {
    const int64_t done = training.steps_done();
    seconds_.push_back(seconds);
    if (is_terminal_ && (seconds_since(shown_) > 0.1 || done == setup_.steps)) draw(training);
    const int64_t tenth = std::max<int64_t>(setup_.steps / 10, 1);
    if (!is_terminal_ && (done % tenth == 0 || done == setup_.steps))
      out_ << line(training) << std::endl;
  }

  // The median of a step's times; the first one, which compiles, is among them.
  double step_seconds() const {
    if (seconds_.empty()) return 0;
    std::vector<double> times = seconds_;
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }

  double tokens_per_second() const {
    const double seconds = step_seconds();
    return seconds > 0 ? static_cast<double>(setup_.batch * setup_.shape.context) / seconds : 0;
  }

  void tell() const {
    if (seconds_.empty()) return;
    char text[96];
    std::snprintf(text, sizeof text, "The median of a step: %.1f ms, %.0f tokens/s.\n\n",
                  step_seconds() * 1e3, tokens_per_second());
    out_ << text;
  }

 private:
  std::string line(const Training& training) const {
    char text[160];
    std::snprintf(text, sizeof text, "step %lld of %lld  %.3f bits a byte  %.0f tokens/s",
                  static_cast<long long>(training.steps_done()),
                  static_cast<long long>(setup_.steps), mean_bits(training.losses, 50),
                  tokens_per_second());
    return text;
  }

  void draw(const Training& training) {
    shown_ = Clock::now();
    constexpr int64_t kWidth = 24;
    const int64_t done = training.steps_done(),
                  full = kWidth * done / std::max<int64_t>(setup_.steps, 1);
    const double left = static_cast<double>(setup_.steps - done) * step_seconds();
    std::fprintf(stderr, "\r[%s%s] %s  %.0f s left \033[K", std::string(full, '#').c_str(),
                 std::string(kWidth - full, '.').c_str(), line(training).c_str(), left);
    if (done == setup_.steps) std::fputc('\n', stderr);
  }

  const Setup& setup_;
  std::ostream& out_;
  bool is_terminal_;
  std::vector<double> seconds_;  // of each step
  Clock::time_point shown_{};
};

std::string picture_path(const std::string& checkpoint) {
  return std::filesystem::path(checkpoint).replace_extension(".svg").string();
}

Checkpoint beginning(const TrainOptions& options, const Corpus& corpus, Device device) {
  if (!options.resume)
    return {options.setup, corpus.mark(), begin_training(options.setup, device)};
  Checkpoint stored = load_checkpoint(options.checkpoint, device);
  check_same_setup(options, stored.setup);
  if (stored.text_mark != corpus.mark())
    fail(options.checkpoint,
         ": its training reads another text; name that one, or begin anew "
         "without --resume");
  return stored;
}

// The mistake, and what is left of the training.
[[noreturn]] void stop(const Error& error, const std::string& path, int64_t done,
                       int64_t saved) {
  fail(error.what(), "\ntraining stopped behind step ", done,
       saved < 0 ? "; no checkpoint was written"
                 : str("; ", path, " holds step ", saved, ": go on with --resume"));
}

// Steps to the end, a checkpoint every so often; what is held out is measured there.
void make_steps(const TrainOptions& options, const Trainer& trainer, Checkpoint& now,
                LossCurve& curve, std::ostream& out) {
  int64_t saved = options.resume ? now.training.steps_done() : -1;
  Progress progress(now.setup, out);
  try {
    while (now.training.steps_done() < now.setup.steps) {
      const Clock::time_point begin = Clock::now();
      trainer.step(now.training);
      progress.show(now.training, seconds_since(begin));
      const int64_t done = now.training.steps_done();
      if (done % options.every != 0 && done != now.setup.steps) continue;
      save_checkpoint(options.checkpoint, now);
      saved = done;
      curve.held.emplace_back(done, trainer.held_bits(now.training.gpt));
    }
    progress.tell();
  } catch (const Error& error) {
    stop(error, options.checkpoint, now.training.steps_done(), saved);
  }
}

void describe(const Checkpoint& at, const Corpus& corpus, Device device, std::ostream& out) {
  const nn::GptShape& shape = at.setup.shape;
  out << "A GPT of " << nn::parameter_count(at.training.gpt) << " parameters (" << shape.layers
      << " layers of " << shape.width << ", " << shape.context << " bytes of context) reads "
      << corpus.held_from << " bytes on " << (device == cpu ? "the CPU" : cuda_device(0).name)
      << "; " << corpus.bytes.size() - corpus.held_from << " are held out.\n"
      << std::flush;
}

void tell_result(const LossCurve& curve, const Training& training, const Setup& setup,
                 Device device, std::ostream& out) {
  const double held = curve.held.back().second;
  char text[160];
  std::snprintf(text, sizeof text,
                "\nHeld-out text: %.3f bits a byte; a Witten-Bell 5-gram of the rest: %.3f.\n",
                held, curve.five_gram);
  out << curve_text(curve) << text << "\nA sample:\n\n"
      << printable(
             sample(training.gpt, "## ", 400, 0.7, static_cast<uint64_t>(setup.seed), device))
      << "\n";
}

void train(const TrainOptions& options, std::ostream& out) {
  const Device device = device_of(options);
  const Corpus corpus = read_corpus(options.files, ".", options.setup.shape.context);
  Checkpoint now = beginning(options, corpus, device);
  describe(now, corpus, device, out);
  const Trainer trainer(now.setup, corpus, device, {.deterministic = options.deterministic});
  LossCurve curve;
  curve.five_gram = five_gram_bits(corpus);
  if (!std::filesystem::exists(options.checkpoint))
    save_checkpoint(options.checkpoint,
                    now);  // a place that cannot be written is known at once
  make_steps(options, trainer, now, curve, out);
  if (curve.held.empty())
    curve.held.emplace_back(now.training.steps_done(), trainer.held_bits(now.training.gpt));
  curve.losses = now.training.losses;
  const std::string picture = picture_path(options.checkpoint);
  write_whole(picture, {curve_svg(curve)});
  tell_result(curve, now.training, now.setup, device, out);
  out << "\nWeights: " << options.checkpoint << "; the curve: " << picture
      << "; more text: make sample\n";
}

void show_sample(const TrainOptions& options, std::ostream& out) {
  const Device device = device_of(options);
  const Checkpoint stored = load_checkpoint(options.checkpoint, device);
  out << printable(sample(stored.training.gpt, options.prompt, options.bytes,
                          options.temperature, static_cast<uint64_t>(options.setup.seed),
                          device))
      << "\n";
}

// Bytes of the character that begins at `at`; 0 where it is broken.
size_t character_bytes(const std::string& text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t bytes = lead < 0x80                   ? 1
                       : lead >= 0xc2 && lead < 0xe0 ? 2
                       : lead >= 0xe0 && lead < 0xf0 ? 3
                       : lead >= 0xf0 && lead < 0xf5 ? 4
                                                     : 0;
  for (size_t k = 1; k < bytes; k++) {
    if (at + k >= text.size() || (static_cast<unsigned char>(text[at + k]) & 0xc0) != 0x80)
      return 0;
  }
  return bytes;
}

}  // namespace

std::string printable(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_bytes(text, at);
    const bool is_control = bytes == 1 && text[at] != '\n' && text[at] != '\t' &&
                            (static_cast<unsigned char>(text[at]) < 0x20 || text[at] == 0x7f);
    result += bytes == 0 || is_control ? "?" : text.substr(at, bytes);
    at += std::max<size_t>(bytes, 1);
  }
  return result;
}

int run_train(const std::vector<std::string>& words, std::ostream& out,
              std::ostream& problems) {
  try {
    const TrainOptions options = parse_train_options(words);
    if (options.wants_help)
      out << train_usage();
    else if (options.is_sample)
      show_sample(options, out);
    else
      train(options, out);
    return 0;
  } catch (const Error& error) {
    problems << error.what() << "\n";
  } catch (const std::bad_alloc&) {
    problems
        << "train: out of memory; give a smaller --batch, --context, --width or --layers\n";
  }
  return 1;
}

}  // namespace tiny_compile
