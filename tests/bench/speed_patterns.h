// Named patterns: everyday functions of networks, each of a fixed dtype and size, beside the
// random draws.
#pragma once

#include <functional>

#include "tests/bench/speed_builder.h"

namespace bench {

// What a pattern's maker added to a builder. For a gradient: of which inputs, and the shape of
// the only result; {}: a loss.
struct Made {
  std::vector<Value> results, leaves = {};
  tiny_compile::Sizes shape = {};
};

using PatternMaker =
    std::function<Made(Builder&, tiny_compile::DType, const tiny_compile::Sizes&)>;

// The name ends in the dtype and the sizes that its maker is given: cumsum_f32_2^26,
// softmax_middle_axis_f32_64x21x50176. Of a class .._gradient the gradients are wanted too.
struct Pattern {
  const char *name, *family;
  PatternMaker make;
  tiny_compile::Sizes small;  // in place of the name's sizes, for the interpreter
};

std::vector<Pattern> patterns_of_axes();      // speed_patterns_axes.cpp
std::vector<Pattern> patterns_of_elements();  // speed_patterns_elements.cpp

std::vector<std::string> pattern_names();
bool is_pattern(const std::string& name);
std::string class_of_pattern(const std::string& name);
uint64_t seed_of_pattern(const std::string& name);  // a hash: its third has max-autotune
// Of the name's sizes, or at Scale::Small of the pattern's small ones. `what` are its calls.
Draw pattern(const std::string& name, Scale scale);

}  // namespace bench
