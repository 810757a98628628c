// The device functions with which generated CUDA kernels read and write memory.
#pragma once

#include <span>

namespace tiny_compile {

// Functions, by the name of the one that stands for them where kernels say what they call.
struct CudaHelper {
  const char* name;
  const char* calls;  // helpers and functions of the prelude, with blanks between
  const char* text;
  bool for_doubles = false;  // an overload that only f64 wants
};

// Behind a pack of halves: tc_to_f32(pack_3, v).
inline constexpr const char* kElementOfPack = ", v";

// In an order in which later ones use earlier ones.
std::span<const CudaHelper> cuda_memory_helpers();

}  // namespace tiny_compile
