// 00-1 ★ Predict the bytes
//
// Three functions of x: f32[rows, columns]. For each, say how many bytes it moves through memory
//   eager      with one kernel an op: each reads its operands and writes its result
//   compiled   as compiled: each function here becomes one kernel
// A kernel is counted as reading each element of an operand once, however often it uses it. An f32
// takes 4 bytes. A number such as 2 is part of the code and costs nothing.
//
// Write formulas in rows and columns. Then look: build/lessons/00 bytes shows how we count.
#pragma once

#include <cstdint>

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

inline Tensor brighten(Tensor x) {
  Tensor doubled = x * 2;
  Tensor shifted = doubled + 1;
  return relu(shifted);  // one op: the maximum of shifted and 0
}

inline Tensor add_bias(Tensor x, Tensor bias) {  // bias: f32[columns], the same for every row
  Tensor sum = x + bias;
  return tanh(sum);
}

inline Tensor normalise(Tensor x) {
  Tensor total = x.sum(-1, true);  // f32[rows, 1]
  return x / total;
}

struct Bytes {
  int64_t eager = 0, compiled = 0;
};

Bytes brighten_bytes(int64_t rows, int64_t columns);
Bytes add_bias_bytes(int64_t rows, int64_t columns);
Bytes normalise_bytes(int64_t rows, int64_t columns);

}  // namespace exercise
