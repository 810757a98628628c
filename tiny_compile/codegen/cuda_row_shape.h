// Which threads share a row, and how a row's elements lie on them.
#pragma once

#include <vector>

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// How the elements of one set of inner loops lie on the threads of a row.
struct Spread {
  std::vector<int> inner;
  int64_t count = 1;
  int vector = 1;      // neighbouring elements of a thread
  int64_t packs = 1;   // packs of a thread in a chunk
  int64_t chunks = 1;  // of the row
  int64_t rounds = 1;  // chunks of a warp
  int64_t size = 1;    // of a chunk
  int64_t values() const { return packs * vector; }
};

struct RowShape {
  int warps = 1, lanes = 32;  // of a row in a block
  int block = 32;             // threads
  int64_t rows_a_block = 1;
  int resident =
      0;  // blocks at least that fit a multiprocessor; 0: what the compiler makes fit
  int64_t turns = 1;            // rows that a thread takes part in, one after the other
  std::vector<Spread> spreads;  // one for each set of inner loops
  const Spread& over(const std::vector<int>& inner) const;
  bool is_shared() const { return warps > 1; }  // a row's chunks: by several
};

// passes: steps that go over the row together, see passes_of.
RowShape row_shape_of(const CudaText& text, const std::vector<std::vector<int>>& passes);

}  // namespace tiny_compile
