// What must a candidate's results be? Those of something that is no candidate, where time allows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct Reference {
  std::vector<Tensor> results;
  std::string whose;  // "the interpreter's"
};

// Of a kernel alone (tune_memory.h), on the inputs' device: the interpreter's results where they take
// less than half a second, else those of the C++ back end under its default schedule; of a kernel that
// this back end does not know those of `own`, the kernel as its policy has it.
Reference reference_for(const Program& alone, std::span<const Tensor> inputs, const Built& own);

}  // namespace tiny_compile
