// What is no exponent of a pass above?
#pragma once

#include "tiny_compile/tile/lowering.h"

namespace tiny_compile {

// A scalar of the thread's only row, which `body` defines: none of the f32 exponents among
// these, which vary with the pass's elements, is above it. -1 where nothing is known of one,
// where something is divided, and where lanes share no row: a thread of a column has no
// registers for two ways.
int highest_exponent(Lowering& l, const std::vector<int>& ids, const Share& k, Body& body);

}  // namespace tiny_compile
