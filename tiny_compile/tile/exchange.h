// How do warps, and the blocks of a cluster, come to know what the others have?
#pragma once

#include "tiny_compile/tile/accumulator.h"

namespace tiny_compile {

// Who has a part of a result: warps whose numbers differ in some bits, blocks, or both.
struct Parts {
  int64_t warps = 1, warp_step = 1;
  int64_t blocks = 1, block_step = 1;
  bool blocks_first = false;  // the block's number is the higher part of a part's
  int64_t count() const { return warps * blocks; }
};

struct Exchange {
  Accumulator all;
  int64_t results = 1;    // of a thread
  Parts parts{};          // of each
  bool of_warps = false;  // a warp's lanes all have the same
  bool repeats = false;   // it is done in each turn
};

// Whether each block sends what it has to the others, so that nobody waits for all that they do.
bool sends(const Tile& tile, const Exchange& exchange);

// Each of the results becomes that of all its parts.
Body exchanged(Tile& tile, const Exchange& exchange);

}  // namespace tiny_compile
