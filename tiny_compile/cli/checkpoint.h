// A training in a file, from which it goes on bit for bit.
#pragma once

#include <string>

#include "tiny_compile/cli/trainer.h"

namespace tiny_compile {

struct Checkpoint {
  Setup setup;
  uint64_t text_mark = 0;  // Corpus::mark of what it reads
  Training training;
};

// A .safetensors file: "gpt.blocks.0.up.weight" and so on, "adam.first...", "losses", "setup". Written
// whole or not at all. Throws tc::Error: "cannot write x: No space left on device; ...".
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Throws tc::Error for what is no checkpoint, a damaged one, NaN in it, and sizes that do not fit.
Checkpoint load_checkpoint(const std::string& path, Device device);

}  // namespace tiny_compile
