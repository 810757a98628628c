// 14-1 ★ One row, 32 threads
//
// The lesson's sum is a tree: of a chunk of 1024, the upper half is added to the lower, 512, 256,
// ... 1. On a GPU a chunk belongs to 32 threads, and thread t reads x[t], x[t + 32], x[t + 64], ...,
// because then 32 threads read 32 neighbours at once. It looks like another order. It is not: the
// halvings by 512, 256, 128, 64 and 32 add elements of one thread only, and what is left for 16, 8,
// 4, 2 and 1 is one number a thread.
//
// Write both halves of the work. sum_row() below must get the bits of the interpreter's sum, for
// every length. Elements that are not there count as -0: x + -0 is x for every x, and x + 0 is not.
#pragma once

#include <array>
#include <vector>

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

constexpr int kChunk = 1024, kThreads = 32;

// What thread t has after the halvings down to 32. It reads x[t], x[t + 32], ... below count, and
// nothing else. 0 <= count <= 1024.
float partial(const float* x, int64_t count, int t);

// The chunk's sum, from one number a thread: the halvings by 16, 8, 4, 2, 1.
float combine(std::array<float, kThreads> partials);

// The sum of a row: chunks, then the chunks' sums by the same rule.
inline float sum_row(std::vector<float> x) {
  if (x.empty()) return 0;
  do {
    std::vector<float> sums;
    for (size_t start = 0; start < x.size(); start += kChunk) {
      const int64_t count = std::min<int64_t>(kChunk, int64_t(x.size() - start));
      std::array<float, kThreads> partials;
      for (int t = 0; t < kThreads; t++) partials[size_t(t)] = partial(&x[start], count, t);
      sums.push_back(combine(partials));
    }
    x = sums;
  } while (x.size() > 1);
  return x[0];
}

}  // namespace exercise
