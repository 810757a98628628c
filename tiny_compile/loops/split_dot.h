// Products with zeros that a graph has put between the elements of an operand, left out.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether a kernel is a dot, one of whose operands is known to be 0 at all but some residues of its
// rows and its depth, with so many products that nobody needs that several kernels are quicker.
bool can_split_dot(const Program& program, const Kernel& kernel);

// The kernels in its place, in order; adds the buffers between them. The same bits.
std::vector<Kernel> split_dot(Program& program, const Kernel& kernel);

}  // namespace tiny_compile
