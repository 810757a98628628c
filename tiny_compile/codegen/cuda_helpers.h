// The device functions that generated CUDA kernels call, beside the shared prelude.
#pragma once

#include <span>
#include <string>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/codegen/calls.h"
#include "tiny_compile/codegen/cuda_memory_helpers.h"
#include "tiny_compile/graph/op.h"

namespace tiny_compile {

// The helpers that are called, directly or through each other; adds what they call.
std::string cuda_helpers_for(Calls& calls);

// What computes; it may use cuda_memory_helpers. In an order in which later ones use earlier ones.
std::span<const CudaHelper> cuda_compute_helpers();

}  // namespace tiny_compile
