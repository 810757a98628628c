// A row's reductions on a CPU.
#pragma once

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

// What a row does for its reducing step of this number, and the register that it makes.
Body reduce_row(RowTile& r, int number);

}  // namespace tiny_compile
