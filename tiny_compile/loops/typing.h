// Which dtypes may a kernel's scalars and steps have?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// "" where all is right; else what is not: "$2 is f64, not f32". Operands are earlier scalars.
std::string why_ill_typed(const Program& program, const Kernel& kernel, int scalar);
std::string why_ill_typed(const Program& program, const Kernel& kernel, const Step& step);

// Ops whose result is always one of the values that the operands' dtype can hold.
bool stays_in_dtype(Op op);

}  // namespace tiny_compile
