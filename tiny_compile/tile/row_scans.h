// A row's running results by one thread.
#pragma once

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

// What a row does for its step of this number: a Scan, or a Reduce that is a scan's total.
Body scan_row(RowTile& r, int number);

}  // namespace tiny_compile
