// Multi-head attention: every place of a sequence takes from every other what suits it.
#pragma once

#include "tiny_compile/nn/layers.h"

namespace tiny_compile::nn {

struct Attention {
  static constexpr const char* names[] = {"query", "key",    "value",  "output",
                                          "heads", "causal", "dropout"};
  Linear query, key, value, output;
  int64_t heads = 1;
  bool causal = false;   // a place sees itself and what stands before it
  Dropout dropout{0.0};  // of the weights with which a place takes

  // [.., length, width] -> the same. mask: of bool, true takes part, or of numbers that are added to
  // the scores [.., heads, length, length].
  Tensor operator()(const Operand& x, const Tensor& mask = {}) const;
  // Asked by one sequence [.., L, width], answered by another one [.., S, width].
  Tensor attend(const Operand& from, const Operand& to, const Tensor& mask = {}) const;
};

struct AttentionOptions {
  bool causal = false;
  bool bias = true;
  double dropout = 0;
  DType dtype = DType::f32;
};
// As PyTorch's MultiheadAttention: query, key and value from xavier_uniform of their stack
// [3 * width, width], the output as a Linear, all biases 0. Throws tc::Error at `here` where heads
// does not divide the width.
Attention make_attention(int64_t width, int64_t heads, AttentionOptions options = {},
                         Here here = Here::current());

}  // namespace tiny_compile::nn
