// Who adds what: a reduction over the bits of an index, whoever owns them.
#pragma once

#include <vector>

#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/share.h"

namespace tiny_compile {

// Elements of a shortcut: enough for their instructions to overlap, few enough for what the long way
// would need once more.
inline constexpr int64_t kHastened = 8;

// What is done before the loop of turns, at the end of each, and behind it: parts, between which
// threads wait for each other. At the end `live` results of each row are left to a thread.
struct Reduced {
  Body before, in_turn;
  std::vector<Body> after = {{}};
  std::vector<Body> waits;  // behind each part but the last
  int64_t live = 1;
};

// Over these bits, of `live` results of each of `rows` rows, in one turn of a loop of `turns`.
Reduced reduce_bits(Tile& tile, const Accumulator& all, const std::vector<Bit>& bits,
                    int64_t live, int64_t rows, int64_t turns);

// The order in which bits are taken: the contract's, or that of least work where any is exact.
std::vector<Bit> order_of(const Accumulator& all, std::vector<Bit> bits);

// Element number `row` of the arrays becomes that row's result, in each thread that shares the row.
Reduced reduce(Tile& tile, const Share& share, const Accumulator& all, int64_t rows);

}  // namespace tiny_compile
