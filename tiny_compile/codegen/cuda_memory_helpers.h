// The device functions with which generated CUDA kernels read and write memory.
#pragma once

#include <span>

namespace tiny_compile {

// A function and a name that says it is used.
struct CudaHelper {
  const char* name;
  const char* text;
};

// In an order in which later ones use earlier ones.
std::span<const CudaHelper> cuda_memory_helpers();

}  // namespace tiny_compile
