// NumPy's .npy files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// Versions 1 to 3, little-endian, C or Fortran order. Throws tc::Error for anything else.
Tensor load_npy(const std::string& path);

// Version 1, C order; whole or not at all. bf16 has no NumPy type: it is written as the u2 of its bits.
void save_npy(const std::string& path, const Tensor& tensor);

// The same of bytes that are no file of their own. read(n) gives the next n, fewer at the end.
using NextBytes = std::function<std::string(size_t)>;
Tensor read_npy(const NextBytes& read, const std::string& name);
std::string npy_header(const Tensor& tensor);         // all that stands before the elements
std::string_view bytes_of(const Tensor& contiguous);  // its elements, on the CPU

}  // namespace tiny_compile
