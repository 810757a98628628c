// What `make train` and `make sample` are told: build/train [FILE ..] --steps=3000 --resume
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/cli/trainer.h"

namespace tiny_compile {

struct TrainOptions {
  bool is_sample = false, resume = false, deterministic = false, wants_help = false;
  std::vector<std::string> files;  // none: the lessons and the README
  std::string checkpoint;
  std::string device;  // "cpu", "cuda"; "": the GPU where there is one
  Setup setup;
  std::vector<std::string> given;  // names of the setup's options that were said
  int64_t every = 250;             // steps from checkpoint to checkpoint
  std::string prompt = "## ";
  int64_t bytes = 400;
  double temperature = 0.7;
};

// Throws tc::Error for an unknown option, a value that is no number, and one that has no effect.
TrainOptions parse_train_options(const std::vector<std::string>& words);
std::string train_usage();

// Throws tc::Error where an option of the setup was given and is not what the checkpoint has.
void check_same_setup(const TrainOptions& options, const Setup& stored);

}  // namespace tiny_compile
