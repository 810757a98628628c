// Mutated Programs: each is refused by the verifier, or runs with the interpreter's bits and
// touches its own elements only.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/harness.h"

namespace tiny_compile {

// What became of them: accepted = too_large + raised + ran (+ failures).
struct MutantCounts {
  int64_t made = 0, refused = 0, too_large = 0, raised = 0, ran = 0;
};

// The text of mutant number `seed`, of a random graph's Program after lower, fuse, schedule or
// plan_memory, for either target. Sixteen mutants in a row are of one graph.
std::string mutant(uint64_t seed);

// Mutants first, first + 1, ...: parsed, which verifies them; those accepted interpreted, and
// compiled together as C++. Each buffer lies between two pages that nobody may touch, at the end
// of the one before and then at the start of the one behind, so a stray access is a SIGSEGV;
// `begin` hears of each mutant before it can die. `skip`: left out.
std::vector<FuzzFailure> fuzz_programs(
    uint64_t first, int count, MutantCounts& counts, const std::set<uint64_t>& skip = {},
    const std::function<void(uint64_t)>& begin = [](uint64_t) {});

// The same, with the accepted run as CUDA on the first GPU.
std::vector<FuzzFailure> fuzz_programs_cuda(
    uint64_t first, int count, MutantCounts& counts, const std::set<uint64_t>& skip = {},
    const std::function<void(uint64_t)>& begin = [](uint64_t) {});

}  // namespace tiny_compile
