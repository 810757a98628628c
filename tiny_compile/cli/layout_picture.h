// Who owns which element: a block's tile under a kernel's layouts, as a coloured grid.
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// SVG, of all kernels or of the named one: the elements of the first block, coloured by warp, with
// lane, register and turn in each; beside them the order in which reductions take the bits, below
// them the facts (tile/facts.h). Of kernels without layouts the facts alone. Throws tc::Error where
// there is no kernel of that name, or none that has a schedule.
std::string layout_picture(const Program& program, const std::string& kernel = "");

}  // namespace tiny_compile
