// Rows of one element are points.
#pragma once

#include <optional>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The kernel with each reduction of a single element replaced by that element, if it then does
// nothing but store points; else nothing.
std::optional<Kernel> as_points(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
