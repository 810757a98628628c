// When do the loops of two kernels step together? Matching axes through a buffer
// that both touch.
#pragma once

#include <optional>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// An index as nested loops, slowest first: i*12 + j with j < 12 is {i, 12}, {j, 1}; i*n + j with
// j < n is {i, n}, {j, 1}. `axis` is an axis of the kernel, or -1 for the symbol at0 (a place chosen by
// data).
struct Loop {
  int axis = -1;
  Expr stride = 1;
  Expr extent = 1;
};
using Nest = std::vector<Loop>;

// The nest of an index that is a sum of stride*axis; nothing when it has other terms.
std::optional<Nest> nest_of(const Kernel& kernel, const Expr& index,
                            const std::vector<Expr>& limits);

// Whether the loops visit 0, 1, 2, ..., size-1 in order: each stride is the next one
// times its extent.
bool covers(const Nest& nest, const Expr& size);

// Whether two nests visit the same places, with or without gaps, in the same loops.
bool same_loops(const Nest& first, const Nest& second);

// Two nests over the same elements cut into common pieces, slowest first:
//   (i: 8192, j: 768) and (b: 8, t: 1024, j: 768)  =>  8, 1024, 768
// Nothing when the extents do not divide (12 against 5).
struct Piece {
  int first = -1, second = -1;  // loops of each nest that the piece is part of
  Expr extent = 1;
};
std::optional<std::vector<Piece>> common_pieces(const Nest& first, const Nest& second);

}  // namespace tiny_compile
