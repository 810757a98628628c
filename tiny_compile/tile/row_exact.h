// What goes over a row in any order: integers, maxima, and places.
#pragma once

#include "tiny_compile/tile/row_chunks.h"

namespace tiny_compile {

// What elements from .. to - 1 come to: the row's own element of the array.
Body accumulate(RowReduction& x, Op op, int array, const Expr& from, const Expr& to);

// Of argmax and argmin, where the result is: the row's own element of an array.
int find_place(RowReduction& x, Body& body);
// The same of values, at the end of `body`.
int first_of(RowReduction& x, Body& body, const std::vector<int>& values);

}  // namespace tiny_compile
