// Whether a trace may be used again, for inputs of other sizes.
#pragma once

#include <span>

#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

// Their dtypes and shapes fit what was given to the trace, and all of its guards hold.
bool admits(const Traced& traced, std::span<const Tensor> inputs);

}  // namespace tiny_compile
