// NumPy's .npy files.
#pragma once

#include <string>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// Versions 1 to 3, little-endian, C or Fortran order. Throws tc::Error for anything else.
Tensor load_npy(const std::string& path);

// Version 1, C order. bf16 has no NumPy type: it is written as the u2 of its bits.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace tiny_compile
