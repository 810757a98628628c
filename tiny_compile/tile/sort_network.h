// Words in the registers of a GPU's threads, put in order by exchanges.
#pragma once

#include "tiny_compile/tile/sort_words.h"

namespace tiny_compile {

// Puts the words that the threads of each row have in order, thread by thread; of lists longer than `kept` the first
// of these, whichever thread begins such a list. `thread` is the number among those of the row, `row` the row's among
// those of the block.
Body sort_words(Tile& tile, const SortWords& words, const SortShape& shape, const Expr& thread,
                const Expr& row, const SortWordArray& all);

}  // namespace tiny_compile
