// A row's sum of products by one thread.
#pragma once

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

// What a row does for its Dot step of this number, one product after the other, and the register that it
// makes. (tile/panel_products.h has the fast way.)
Body dot_row(RowTile& r, int number);

}  // namespace tiny_compile
