// A row's reductions by one thread.
#pragma once

#include "tiny_compile/tile/row_chunks.h"

namespace tiny_compile {

// What a row does for its reducing step of this number, and the register that it makes.
Body reduce_row(RowTile& r, int number);

// The register of a step of this number, if anything uses it: the row's own first element of an array, in
// the register's dtype.
Body make_register(const RowReduction& x, int number, int array);

}  // namespace tiny_compile
