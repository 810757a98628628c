// Does a step write each element of its buffer, once?
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether an index takes each of 0 .. size-1 exactly once as the axes
// run: then no two points write one element, and no element is left out. False where that is not
// seen: of sums of multiples of the axes' digits, such as i0%64*128 + i0/64, it is.
bool covers(const Expr& index, const std::vector<Axis>& axes, const Expr& size);

// Where the elements of the buffer's shape lie. A temporary may have rows longer than its shape's
// (pad_rows.h): 0..row-1 of every `stride` elements are its own.
struct Rows {
  Expr row, stride, count;
};
Rows rows_of(const Buffer& buffer);  // count 0: the buffer is neither whole nor padded rows

// The number that an element of the buffer has in its shape, for an index of its memory.
Expr number_in_shape(const Rows& rows, const Expr& index);
bool is_own(const Rows& rows, const Expr& index);  // it never lies in the padding

}  // namespace tiny_compile
