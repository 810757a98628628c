// Sorted rows by threads that go alone.
#pragma once

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

// What a CPU's row does for its Sort step of this number.
Body sort_row(RowTile& r, int number);

// Of a GPU, where no threads share a row, or a run of it: each has an element, and counts those that go before it.
Body rank_element(RowTile& r, const Expr& number);

}  // namespace tiny_compile
