// Who adds what: a reduction over the bits of an index, whoever owns them.
#pragma once

#include <vector>

#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/share.h"

namespace tiny_compile {

// Elements of a shortcut: enough for their instructions to overlap, few enough for what the long way
// would need once more.
inline constexpr int64_t kHastened = 8;

// What is done before the loop of turns, at the end of each, and behind it. Then element
// number `row` of the arrays is that row's result, in each thread that shares the row.
struct Reduced {
  Body before, in_turn, after;
};

// The order in which bits are taken: the contract's, or that of least work where any is exact.
std::vector<Bit> order_of(const Accumulator& all, std::vector<Bit> bits);

Reduced reduce(Tile& tile, const Share& share, const Accumulator& all, int64_t rows);

}  // namespace tiny_compile
