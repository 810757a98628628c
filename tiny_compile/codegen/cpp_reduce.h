// The contract's summation trees as C++ text.
#pragma once

#include <string>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {

// The helper functions that reduce steps of these kernels call, each once; adds what
// these call.
std::string reduction_helpers(const Program& program, Calls& calls);

// Reduce step `number` inside a row: declares its register r<number> and computes it.
void write_reduction(KernelText& text, const Step& step, int number,
                     const std::vector<bool>& defined);

// "sum_float": the suffix of helper names for a reduction in this accumulator type.
std::string helper_suffix(Op op, DType accumulator);

}  // namespace tiny_compile
