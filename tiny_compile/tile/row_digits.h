// A row's places in the order of its keys, by their digits, by one thread.
#pragma once

#include "tiny_compile/tile/sorted_row.h"

namespace tiny_compile {

// How many digits a key has: each is a pass over the row.
int digits_of(const SortWords& words);

// The run of `length` elements, one at least, from `from` on.
Body sort_by_digits(const SortedRow& row, const Expr& from, const Expr& length);

}  // namespace tiny_compile
