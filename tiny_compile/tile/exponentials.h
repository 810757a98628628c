// A row's sum of exponentials, which is against its largest.
#pragma once

#include "tiny_compile/tile/reduce.h"

namespace tiny_compile {

// As reduce() does it; element number `row` of `largest`, where it has an array, becomes that row's
// largest value.
Reduced reduce_exponentials(Tile& tile, const Share& share, const Accumulator& all,
                            const Accumulator& largest, int64_t rows);

}  // namespace tiny_compile
