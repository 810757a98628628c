// The grammar of speed fuzzing: which functions are drawn, and how often.
#pragma once

#include "tests/bench/speed_builder.h"

namespace bench {

// The same draw for the same seed, at each scale the same function of other sizes.
Draw draw(uint64_t seed, Scale scale);
Draw draw_of(const std::string& family, uint64_t seed, Scale scale);  // of this one alone

std::vector<std::string> families();

// Seeds of a record: number `index` of those that a commit's hash names, all below 2^48.
uint64_t seed_of(const std::string& hash, uint64_t index);
bool has_max_autotune(uint64_t seed);  // a third of them

}  // namespace bench
