// Which kernels could a vendor's matrix library run, and as which call?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/loops/library_layout.h"

namespace tiny_compile {

struct LibraryBatch {
  int64_t count = 1;
  int64_t a = 0, b = 0, d = 0;  // strides, in elements
  bool operator==(const LibraryBatch&) const = default;
};

// What the library does to a product before it stores it. GeluGradient multiplies by gelu' of
// `saved`, as gelu_backward(a @ b, saved, "tanh") does.
enum class Activation : uint8_t { None, Relu, Gelu, GeluGradient };

// The vector along the rows of D: added, or the sum over the columns of D, or over k of A or B
// (of B: along the columns of D). Sums are another kernel's work: library_sums.h matches them.
enum class LibraryVector : uint8_t { None, Bias, GradientOfD, GradientOfA, GradientOfB };

// D = activation(alpha * A * B + bias) for each batch: A is m x k, B k x n and D m x n. Rows
// (m) are the axis along which D is contiguous: of a row-major result, its columns.
struct LibraryMatmul {
  int64_t m = 1, n = 1, k = 1;
  LibraryMatrix a, b, d;
  std::vector<LibraryBatch> batches;  // the first is the library's, the others are loops
  double alpha = 1;
  bool tf32 = false;               // f32 operands rounded to tf32
  int algorithm = 0, split_k = 0;  // as its schedule says
  Activation activation = Activation::None;
  LibraryVector vector = LibraryVector::None;
  LibraryMatrix bias;  // m x 1, the sums of B n x 1
  LibraryMatrix
      saved;  // m x n, of D's batches: what the activation is taken of; buffer -1: none
  int64_t calls() const;
  bool operator==(const LibraryMatmul&) const = default;
};

// The calls that do it. The library's fast kernels want rows (m) in multiples of 16 bytes; what
// is over is a call of its own.
std::vector<LibraryMatmul> library_calls(const LibraryMatmul& matmul);

// How far the library's result may be from the contract's, |a - b| / |b| by the Euclidean norm: four
// times the roundings that differ. Of the result half an ulp; of a sum of k products in f32, in any
// order, sqrt(k) halves of one, being independent; of tf32 both factors'; of gelu an approximate tanh.
double tolerance_of(const LibraryMatmul& matmul);

// "bf16 768x4096x3072 (m x n x k), A transposed, + bias, gelu".
std::string str(const LibraryMatmul& matmul);

struct LibraryMatch {
  std::optional<LibraryMatmul> matmul;
  std::string reason;  // why not
};

// Matches one Dot with what stands behind it. Loads must be plain views, all sizes constant.
LibraryMatch library_matmul(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
