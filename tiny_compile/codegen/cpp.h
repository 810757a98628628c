// Program -> plain C++: one translation unit without standard headers.
#pragma once

#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

Source emit_cpp(const Program& program);

// Several programs in one unit, so that the compiler starts once: all have the same text.
std::vector<Source> emit_cpp_together(const std::vector<Program>& programs);

}  // namespace tiny_compile
