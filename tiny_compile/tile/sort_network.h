// Words in the registers of a GPU's threads, put in order by exchanges.
#pragma once

#include "tiny_compile/tile/sort_words.h"

namespace tiny_compile {

// Who has which elements while a row of `count` is sorted, of which the first `wanted` are kept: `threads` hold
// `own` words each: `each`, or all of a shorter row.
struct SortShape {
  SortShape(int64_t count, int64_t wanted, int each);

  int own, threads, rows;  // rows of a block
  int kept;                // words of a sorted list that are not dropped: a power of two
  int padded() const { return own * threads; }
  bool is_in_warp() const { return threads <= 32; }
};

// Puts the words that the threads of each row have in order, thread by thread; of lists longer than `kept` the first
// of these, whichever thread begins such a list. `thread` is the number among those of the row.
Body sort_words(Tile& tile, const SortWords& words, const SortShape& shape, const Expr& thread,
                const SortWordArray& all);

}  // namespace tiny_compile
