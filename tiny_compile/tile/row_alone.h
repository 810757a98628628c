// A row's tree by a thread of a GPU.
#pragma once

#include "tiny_compile/tile/row_chunks.h"

namespace tiny_compile {

// The array whose first element is the result.
int tree_alone(RowReduction& x, Body& body);

}  // namespace tiny_compile
