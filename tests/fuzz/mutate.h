// Program texts with small mistakes, as a hand or a wrong pass would make them.
#pragma once

#include <cstdint>
#include <string>

namespace tiny_compile {

// The same text for the same seed: one to three changes of numbers, names, ops, dtypes, operators,
// fields of schedules, or whole lines that are dropped, doubled or exchanged.
std::string mutated(const std::string& text, uint64_t seed);

}  // namespace tiny_compile
