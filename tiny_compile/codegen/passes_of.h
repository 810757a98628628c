// Which steps of a kernel may go over a row together?
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Numbers of steps, in order, by pass: steps over the same loops that need not wait for each
// other, so that the row is read once for them. A pass is of stores, or of reductions of which
// none uses another's result; argmax and argmin are alone.
std::vector<std::vector<int>> passes_of(const Kernel& kernel);

inline bool is_arg(const Step& step) { return step.op == Op::argmax || step.op == Op::argmin; }

}  // namespace tiny_compile
