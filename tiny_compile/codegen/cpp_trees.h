// The functions of the contract's summation trees.
#pragma once

#include <string>

#include "tiny_compile/codegen/calls.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The helper functions that reduce steps of these kernels call, each once; adds what
// these call.
std::string reduction_helpers(const Program& program, Calls& calls);

// "sum_float": the suffix of helper names for a reduction in this accumulator type.
std::string helper_suffix(Op op, DType accumulator);

}  // namespace tiny_compile
