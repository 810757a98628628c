// Which accesses are of neighbours, that a thread moves at once?
#pragma once

#include <optional>
#include <string>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// The axis along which a pass reads and writes vectors, and the name of it where one begins.
struct VectorAxis {
  int axis = -1;
  std::string start;
  int64_t width = 1;
};

// i1 = flat % 8; i0 = flat / 8; the axis of vectors by the name of where they begin.
Body unpack(const Kernel& kernel, const std::vector<int>& axes, Expr flat,
            const VectorAxis& vector);

// The axis of vectors itself, of one element.
Statement element_axis(const Kernel& kernel, const VectorAxis& vector, const Expr& element);

// Whether the elements of a vector lie side by side there, and it never astride.
bool is_wide(const Program& program, const Kernel& kernel, const VectorAxis& vector,
             const Expr& index, int buffer);

// The index of a vector's first element.
Expr at_start(const Kernel& kernel, const VectorAxis& vector, const Expr& index);

// A mask that says the same of all elements of a vector: index < bound, both multiples of its
// width, or the index the same for all.
struct Within {
  Expr index, bound;
};

std::optional<Within> mask_of_vector(const Kernel& kernel, const VectorAxis& vector, int mask);

}  // namespace tiny_compile
