// Which sums can the library make beside a product? The gradient of a bias, where the product
// makes or multiplies the gradient that is summed.
#pragma once

#include <vector>

#include "tiny_compile/loops/library_matmul.h"

namespace tiny_compile {

// rows(j: width) { r0 = sum(i: count) load x[i*ld + j] ; store y[j] = r0 }
struct ColumnSums {
  int64_t width = 1, count = 1;
  LibraryMatrix of;  // x, width x count
  LibraryMatrix to;  // y
};

// The kernel as that, if it does nothing else.
std::optional<ColumnSums> column_sums(const Program& program, const Kernel& kernel);

// The product with those sums as its vector; why not, or "" where they have no matrix in common.
LibraryMatch with_sums(const Program& program, const LibraryMatmul& product,
                       const ColumnSums& sums);

// A stage behind fold_columns, not in the default pipeline (tests/bench/NOTES.md says what it costs). Sums
// that the library can make beside a product get into its launch, behind it: `launch matmul_4,
// sum_5`. Neither is another kernel for that.
Program library_sums(const Program& program);

// What the library does of a Program, by its schedules on a GPU: of each kernel the call that it is, and the kernel of its
// launch whose sums that call makes as well (-1: none).
struct LibraryCall {
  std::optional<LibraryMatmul> matmul;
  int sums = -1;
};
std::vector<LibraryCall> library_kernels(const Program& program);

}  // namespace tiny_compile
