// Elements of one buffer, in another or in another order.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

struct Element {
  int buffer = -1;
  Expr index;  // of the element, by the axes
};

//   rows(i0: 4, i1: 8) { store to[i1*4 + i0] = load from[i0*8 + i1] }
//
// In the normal form of loops, without a name.
Kernel copy_kernel(const Program& program, std::vector<Axis> axes, const Element& from,
                   const Element& to);

}  // namespace tiny_compile
