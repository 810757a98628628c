// The contract's summation trees as C++ text.
#pragma once

#include <string>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {

// Reduce step `number` inside a row: declares its register r<number> and computes it.
void write_reduction(KernelText& text, const Step& step, int number,
                     const std::vector<bool>& defined);

}  // namespace tiny_compile
