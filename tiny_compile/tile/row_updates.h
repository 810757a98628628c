// A row's updates of chosen places by one thread.
#pragma once

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

// Whether rows side by side choose the same places, and may be lanes.
bool shares_places(const Kernel& kernel);

// What a row does for its Scatter step of this number.
Body update_row(RowTile& r, int number);

}  // namespace tiny_compile
