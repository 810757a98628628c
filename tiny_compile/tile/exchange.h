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

// Each of the results becomes that of all its parts. What threads wait for stands between what they
// give and what they take, so that they can wait once for several exchanges.
struct Exchanged {
  Body give, wait, take;
};
Exchanged exchanged(Tile& tile, const Exchange& exchange);

// Element w of the lane that is number l of the `lanes` has part l + w*lanes.
struct Taken {
  int64_t parts = 1, lanes = 1;
  std::vector<int> steps{};  // by which these lanes' numbers differ, the highest bit first
  int64_t many() const;      // of a lane
};

// Each lane's own: read(w, part) takes one; where there is none the array has what adds nothing.
Body taken(Tile& tile, const Accumulator& theirs, const Taken& how, const Expr& lane,
           const std::function<Body(const Expr& w, const Expr& part)>& read);

// Element 0 is that of all parts, in the order of a chunk's halves.
Body added_up(Tile& tile, const Accumulator& theirs, const Taken& how);

// Blocks of a cluster that read what one has given keep it from ending; and before one is sent to, it has
// to be there. `reduced`: statements up to the end of the last reduction.
void bound_cluster(Body& body, size_t reduced);

}  // namespace tiny_compile
