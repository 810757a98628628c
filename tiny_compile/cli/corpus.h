// A text to learn from: bytes, the last tenth held out, and which windows of it a step sees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct Corpus {
  std::string bytes;
  size_t held_from = 0;  // the first byte that is held out

  std::string learnt() const { return bytes.substr(0, held_from); }
  std::string held() const { return bytes.substr(held_from); }
  uint64_t mark() const;  // of these bytes: another text has another one
};

// Files one behind the other; without any, README.md and the lessons' pages below `root`, in order.
// Throws tc::Error for a file that cannot be read, and for a text too short for windows of `context`.
Corpus read_corpus(const std::vector<std::string>& files, const std::string& root,
                   int64_t context);

// i64 [batch, context] each; next[r, k] is the byte after bytes[r, k].
struct Batch {
  Tensor bytes, next;
};

// The windows of a step, anywhere in what is learnt: a function of seed and step alone, so that
// training may be stopped and goes on with the same ones.
Batch batch_at(const Corpus& corpus, uint64_t seed, int64_t step, int64_t batch,
               int64_t context);

// The windows at these first bytes.
Batch windows_at(const std::string& bytes, const std::vector<int64_t>& starts, int64_t context);

// Bits a byte that a 5-gram of what is learnt needs for what is held out, smoothed by Witten and
// Bell's (1991) rule, method C: of a context seen n times with u different bytes behind it,
//   p(c | context) = (count(c) + u * p(c | the context without its first byte)) / (n + u),
// and 1/256 where all contexts are used up.
double five_gram_bits(const Corpus& corpus);

}  // namespace tiny_compile
