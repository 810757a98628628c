// Mutated IR texts for the parsers' tests.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace tiny_compile::tests {

// One of the texts with one to five random changes: characters, numbers, ops, lines.
std::string mutated(const std::vector<std::string>& corpus, std::mt19937_64& random);

}  // namespace tiny_compile::tests
