// The device functions that generated CUDA kernels call, beside the shared prelude.
#pragma once

#include <string>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/graph/op.h"

namespace tiny_compile {

// "tc_sum_float": the struct that says how a reduction combines two values of this type.
std::string cuda_op(Op reduction, DType type);

// The helpers that `body` mentions, and what these need.
std::string cuda_helpers_for(const std::string& body);

}  // namespace tiny_compile
