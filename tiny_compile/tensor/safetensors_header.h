// The header of a .safetensors file: which tensor is where in the bytes behind it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct SafetensorsEntry {
  std::string name;  // UTF-8
  DType dtype = DType::f32;
  Sizes shape;
  uint64_t begin = 0, end = 0;  // in bytes, from the header's end
};

// In the order of their bytes, without gaps from 0 on, each as long as its shape says. "__metadata__"
// (strings) is read over. Throws tc::Error, which begins with `path` and names the byte of the header.
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view header,
                                                       const std::string& path);

// Padded with blanks to a multiple of 8 bytes.
std::string safetensors_header(const std::vector<SafetensorsEntry>& entries);

}  // namespace tiny_compile
