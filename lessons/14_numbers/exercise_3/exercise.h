// 14-3 ★★★ A dtype of your own: fp8
//
// A byte that is a number: e4m3 of the OCP's 8-bit formats, what matmuls of today are fed with.
//
//   bit    7     6 5 4 3    2 1 0
//        sign   exponent e  mantissa m
//
//   e > 0    (1 + m/8) * 2^(e - 7)       normal: 0x38 is 1, 0x39 is 1.125
//   e = 0    m/8 * 2^-6                  denormal: 0x01 is 2^-9, 0x00 is 0, 0x80 is -0
//   0x7f, 0xff                           NaN; all else with e = 15 is a number
//
// So there is no infinity, and the largest number is 0x7e: 448. A float becomes the nearest code,
// ties to the even one (the last bit of m is 0). What rounds to more than 448, and Inf, becomes NaN
// (Overflow::ToNaN), or +-448 (Overflow::Saturate). 464 is halfway between 448 and the 480 that is
// not there; it rounds to the even one, 448. A NaN becomes a NaN in either mode, of either sign.
//
// A dtype needs three things in a compiler; write all three.
//
// Conversion: to_f32 and to_fp8. Storage: a tensor of fp8 is a u8 tensor, a byte an element, and
// row-major, whatever the strides of the f32 tensor it came from. Meaning: interpret_fp8 runs a
// graph as if each of its f32 values were fp8, as f16 and bf16 are run: an op reads its operands
// from storage, computes in f32, and its result is rounded once, into storage. That holds for
// inputs, constants and reductions too; a reduction adds up in f32. Values of other dtypes stay as
// they are.
//
// What helps: evaluate(node, operands) runs one node (graph/interpreter.h); contiguous_copy(x) is
// row-major; empty_tensor(uint8, x.shape()) and data<T>(); prelude::tc_bits and tc_from_bits.
#pragma once

#include <cstdint>
#include <vector>

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

struct Fp8 {
  uint8_t bits;
};

enum class Overflow { ToNaN, Saturate };

float to_f32(Fp8 x);
Fp8 to_fp8(float x, Overflow overflow);

Tensor store_fp8(const Tensor& x, Overflow overflow);  // f32 => u8, row-major
Tensor load_fp8(const Tensor& codes);                  // u8, row-major => f32

// The graph's outputs: of an f32 node its codes, of another its values.
std::vector<Tensor> interpret_fp8(const Graph& graph, const std::vector<Tensor>& inputs,
                                  Overflow overflow);

}  // namespace exercise
