// A row's updates of chosen places by one thread.
#pragma once

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

// What a row does for its Scatter step of this number.
Body update_row(RowTile& r, int number);

}  // namespace tiny_compile
