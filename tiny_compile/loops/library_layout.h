// Which matrices of BLAS are operands that strides describe?
#pragma once

#include <optional>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// One matrix of a call, column-major as BLAS counts: element (row, column) of what is stored
// lies at offset + row + column*ld.
struct LibraryMatrix {
  int buffer = -1;
  int64_t offset = 0;  // elements from the buffer's lowest
  int64_t ld = 1;
  bool transposed = false;  // the operand is the stored matrix's transpose
  DType dtype = DType::f32;
  bool operator==(const LibraryMatrix&) const = default;
};

// ld and orientation of `rows` x `columns` with these strides, if it is a matrix of BLAS.
bool lay_out(LibraryMatrix& matrix, int64_t rows, int64_t row_stride, int64_t columns,
             int64_t column_stride);

// The strides of an index that is a sum of constant * axis, one an axis, and its constant;
// nothing where it is no such sum.
std::optional<std::vector<int64_t>> strides_of(const Expr& index, const std::vector<Axis>& axes,
                                               int64_t& offset);

// What a product reads and writes: its factors, the result, what is saved, what is added.
enum LibraryAccess { kLeft, kRight, kResult, kSaved, kBias, kAccesses };

// A loop with its stride in each access.
struct LibraryLoop {
  int64_t extent = 1;
  int64_t stride[kAccesses] = {};
};

// The loops of a product. Rows of D are the axis along which it is contiguous; `fast` is the
// factor that has this axis, A.
struct ProductLoops {
  LibraryLoop rows, columns, k;
  std::vector<LibraryLoop> batches;
  LibraryAccess fast = kRight;
};

// Of a kernel whose rows are these loops and whose sum is over `inner`. Nothing where that is not
// one loop.
std::optional<ProductLoops> product_loops(const std::vector<LibraryLoop>& rows,
                                          const std::vector<LibraryLoop>& inner);

}  // namespace tiny_compile
