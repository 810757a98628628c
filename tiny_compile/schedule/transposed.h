// Points whose loads and stores run along different axes.
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The kernel with the axes along which it stores as loops, and layouts by which a block turns a tile of
// rows and elements in shared memory; nothing where its accesses run along one axis, or it is not of
// points.
std::optional<Kernel> transposed(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
