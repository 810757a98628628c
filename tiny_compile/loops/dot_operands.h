// How do the operands of a product lie in memory, seen along its lanes (its rows or columns) and its depth?
#pragma once

#include <optional>
#include <vector>

#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {

// The kernel as its left or its right operand sees it: lists[0] are its lanes, lists[1] its depth. Each view's new
// axes have names of their own.
DotView left_view(const Kernel& kernel, const DotAxes& axes);
DotView right_view(const Kernel& kernel, const DotAxes& axes);
// As its stores see it: lists[0] are the rows, lists[1] the columns.
DotView results_view(const Kernel& kernel, const DotAxes& axes);

// Where the elements of an operand lie that is, or is made of, a plain load along lanes and depth, each one
// axis, of which one is contiguous: at `index` of the buffer, with `lane` and `step` elements between neighbours.
struct Strided {
  int load = -1;  // the scalar
  int64_t lane = 0, step = 0;
};
std::optional<Strided> strided(const DotView& view, int operand);

// Of the left operand, where it can be multiplied from where it lies: floats as they are.
std::optional<Strided> rows_as_they_lie(const Program& program, const Kernel& kernel,
                                        const DotAxes& axes);

// Whether loops that evaluate it had better run along its depth than along its lanes.
bool lies_along_depth(const DotView& view, int operand);

// What its sums are made in: narrow integers in i32.
DType sum_type(const Kernel& kernel, const DotAxes& axes);

}  // namespace tiny_compile
