// Which words choose what?
//
//   text.txt --steps=500 --width 64   =>   files {text.txt}, setup.steps 500, setup.shape.width 64
#include "tiny_compile/cli/train_options.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostBytes = 1000000;

// One of the setup's numbers, by the name of its option.
struct Number {
  const char *name, *meaning;
  std::function<int64_t&(Setup&)> whole;  // one of these two
  std::function<double&(Setup&)> real;
};

const std::vector<Number>& numbers() {
  static const std::vector<Number> all = {
      {"steps", "how many", [](Setup& s) -> int64_t& { return s.steps; }, {}},
      {"batch", "windows a step", [](Setup& s) -> int64_t& { return s.batch; }, {}},
      {"context", "bytes a window", [](Setup& s) -> int64_t& { return s.shape.context; }, {}},
      {"layers", "of the model", [](Setup& s) -> int64_t& { return s.shape.layers; }, {}},
      {"heads", "of attention", [](Setup& s) -> int64_t& { return s.shape.heads; }, {}},
      {"width", "of its vectors", [](Setup& s) -> int64_t& { return s.shape.width; }, {}},
      {"seed", "of weights and windows", [](Setup& s) -> int64_t& { return s.seed; }, {}},
      {"rate", "the highest learning rate", {}, [](Setup& s) -> double& { return s.rate; }},
      {"decay", "AdamW's weight decay", {}, [](Setup& s) -> double& { return s.decay; }},
      {"clip",
       "the largest norm of a gradient",
       {},
       [](Setup& s) -> double& { return s.clip; }},
  };
  return all;
}

template <typename T>
T number_of(const std::string& name, const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end)
    fail("--", name, "=", text, " is no ", std::is_integral_v<T> ? "whole " : "", "number");
  return value;
}

bool set_number(Setup& setup, const std::string& name, const std::string& value) {
  for (const Number& number : numbers()) {
    if (number.name != name) continue;
    if (number.whole) number.whole(setup) = number_of<int64_t>(name, value);
    if (number.real) number.real(setup) = number_of<double>(name, value);
    return true;
  }
  return false;
}

// An option with a value; whether there is one of that name.
bool set_option(TrainOptions& options, const std::string& name, const std::string& value) {
  if (set_number(options.setup, name, value)) {
    options.given.push_back(name);
  } else if (name == "checkpoint") {
    options.checkpoint = value;
  } else if (name == "device") {
    options.device = value;
  } else if (name == "every") {
    options.every = number_of<int64_t>(name, value);
  } else if (name == "prompt") {
    options.prompt = value;
  } else if (name == "bytes") {
    options.bytes = number_of<int64_t>(name, value);
  } else if (name == "temperature") {
    options.temperature = number_of<double>(name, value);
  } else {
    return false;
  }
  return true;
}

bool set_flag(TrainOptions& options, const std::string& name) {
  const std::pair<const char*, bool*> flags[] = {{"sample", &options.is_sample},
                                                 {"resume", &options.resume},
                                                 {"deterministic", &options.deterministic},
                                                 {"help", &options.wants_help}};
  for (const auto& [of, flag] : flags) {
    if (name == of) return *flag = true;
  }
  return false;
}

void check(const TrainOptions& options) {
  if (!options.device.empty() && options.device != "cpu" && options.device != "cuda")
    fail("--device=", options.device, ": there are cpu and cuda");
  if (options.every < 1) fail("--every=", options.every, ": it must be at least 1");
  if (options.bytes < 0 || options.bytes > kMostBytes)
    fail("--bytes=", options.bytes, ": it must be at least 0 and at most ", kMostBytes);
  if (options.is_sample && !options.files.empty())
    fail("--sample reads no text, but '", options.files[0],
         "' was named; give --checkpoint=FILE and --prompt=TEXT");
  for (const std::string& name : options.given) {
    if (options.is_sample && name != "seed")
      fail("--", name, " has no effect on a sample: the checkpoint has its own");
  }
  check_setup(options.setup);
}

}  // namespace

std::string train_usage() {
  std::string text =
      "train [FILE ..]            trains on these texts, or on the lessons and README.md\n"
      "  --checkpoint=PATH        build/gpt.safetensors; the loss curve stands beside it, as "
      ".svg\n"
      "  --every=250              steps from checkpoint to checkpoint\n"
      "  --resume                 goes on from the checkpoint, bit for bit\n"
      "  --device=cpu|cuda        the GPU where there is one\n"
      "  --deterministic          on it, too, the CPU's bits: without the vendor's matmuls\n";
  Setup setup;
  for (const Number& number : numbers()) {
    std::string line = str("  --", number.name, "=");
    line += number.whole ? str(number.whole(setup)) : str(number.real(setup));
    line.resize(std::max<size_t>(line.size() + 1, 27), ' ');
    text += line + number.meaning + "\n";
  }
  return text +
         "train --sample             text from a checkpoint\n"
         "  --prompt='## ' --bytes=400 --temperature=0.7 --seed=1\n";
}

TrainOptions parse_train_options(const std::vector<std::string>& words) {
  TrainOptions options;
  options.checkpoint = "build/gpt.safetensors";
  for (size_t i = 0; i < words.size(); i++) {
    const std::string& word = words[i];
    if (word.rfind("--", 0) != 0) {
      options.files.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (equals == std::string::npos && set_flag(options, name)) continue;
    if (equals == std::string::npos && i + 1 == words.size())
      fail("--", name, " is no option, or needs a value\n", train_usage());
    const std::string value =
        equals == std::string::npos ? words[++i] : word.substr(equals + 1);
    if (!set_option(options, name, value)) fail("no option --", name, "\n", train_usage());
  }
  check(options);
  return options;
}

void check_same_setup(const TrainOptions& options, const Setup& stored) {
  Setup given = options.setup, there = stored;
  const auto differs = [&](const Number& number) {
    return number.whole ? number.whole(given) != number.whole(there)
                        : number.real(given) != number.real(there);
  };
  for (const Number& number : numbers()) {
    const bool was_given = std::find(options.given.begin(), options.given.end(), number.name) !=
                           options.given.end();
    if (was_given && differs(number))
      fail(options.checkpoint, ": its training has another --", number.name, ", ",
           number.whole ? str(number.whole(there)) : str(number.real(there)),
           "; leave the option out, or begin anew without --resume");
  }
}

}  // namespace tiny_compile
