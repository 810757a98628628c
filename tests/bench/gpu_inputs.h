// Inputs from a counter: element i of the tensor with seed s is a hash of i and s, so that
// PyTorch (gpu_peers.py) makes the same bits on its side.
//
//   x = i*0x9e3779b9 + s*0x85ebca6b (32 bits), then the finalizer `mix` of gpu_inputs.cpp
//   floats:   shift + (int(x >> 8) - 2^23) * (scale * 2^-23), both steps rounded to f32
//   integers: x mod classes + shift, f16 and bf16 rounded from the f32
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/tiny_compile.h"

namespace bench {

struct Input {
  tiny_compile::DType dtype = tiny_compile::DType::f32;
  tiny_compile::Sizes shape, strides;  // of the view of the storage that the function is given
  int64_t start = 0;                   // where it begins
  int64_t count = 0;                   // elements of the storage
  uint32_t seed = 0;
  float scale = 1, shift = 0;  // floats lie in [shift - scale, shift + scale)
  int64_t classes = 0;         // integers in [shift, shift + classes)
};

Input dense_input(tiny_compile::DType dtype, tiny_compile::Sizes shape, uint32_t seed);

// "misaligned", "transposed" or "strided" storage for the same shape.
void lay_out(Input& input, const std::string& layout);

tiny_compile::Tensor make_input(const Input& input, tiny_compile::Device device);
// Not filled (zeros on a GPU): for what depends on shapes alone.
tiny_compile::Tensor blank_input(const Input& input, tiny_compile::Device device);

// Type and layout without memory behind it: tracing reads no values.
tiny_compile::Tensor shape_only(const Input& input);

// The storage's elements as signed integers of their width, summed modulo 2^64: both sides
// compare theirs.
int64_t checksum(const tiny_compile::Tensor& tensor);

}  // namespace bench
