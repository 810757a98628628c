// Program -> plain C++: one translation unit without standard headers.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A kernel's entry: extern "C" void function(void* const* buffers, long long begin, long long
// end). buffers[b] is the address of Program::buffers[b] (of its lowest element); units
// begin..end-1 of 0..units-1 are done by one call; calls for disjoint ranges may run at the
// same time.
struct CppKernel {
  std::string function;
  int64_t units = 0;
  int64_t grain = 1;  // units worth handing to a thread
};

// The text also exports `unsigned tc_take_errors()`: bits as in graph/lanes.h that kernels set
// on the calling thread since it was last asked.
struct CppSource {
  std::string text;
  std::vector<CppKernel> kernels;  // of each Program kernel, in order
};

CppSource emit_cpp(const Program& program);

// Several programs in one unit, so that the compiler starts once: all have the same text.
std::vector<CppSource> emit_cpp_together(const std::vector<Program>& programs);

}  // namespace tiny_compile
