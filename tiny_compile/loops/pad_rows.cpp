// Why does a product of 50257 columns take eight times as long as one of 50264? Its rows start
// at odd addresses, and the library's fast kernels want 16 bytes, of operands as well. A temporary's
// layout is ours:
//
//   temp t: bf16[8192,50257]                    store t[i*50257 + j]
// =>
//   temp t: bf16[8192,50257] size=411762688     store t[i*50264 + j]
#include "tiny_compile/loops/pad_rows.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/library_matmul.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAligned = 16;     // bytes
constexpr int64_t kWorthwhile = 64;  // elements of a row

bool divides(const Expr& index) {
  if (index.kind() == ExprKind::FloorDiv || index.kind() == ExprKind::Mod) return true;
  if (index.is_constant() || index.kind() == ExprKind::Symbol) return false;
  return std::any_of(index.operands().begin(), index.operands().end(), divides);
}

// i*50257 + j  =>  i*50264 + j
Expr padded(const Expr& index, int64_t row, int64_t longer) {
  return floor_div(index, row) * longer + mod(index, row);
}

// The row's length, 0 where there is nothing to gain.
int64_t ragged_row(const Buffer& buffer) {
  if (buffer.role != Role::Temporary || buffer.type.shape.size() < 2) return 0;
  const Expr& row = buffer.type.shape.back();
  if (!row.is_constant() || !buffer.size.is_constant()) return 0;
  const int64_t bytes = row.constant() * size_of(buffer.type.dtype);
  return bytes % kAligned != 0 && row.constant() >= kWorthwhile ? row.constant() : 0;
}

// Rewrites every access; false, and nothing is to be kept, where one does not go row by row.
bool pad(Program& program, int buffer, int64_t row, int64_t longer) {
  for (Kernel& kernel : program.kernels) {
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.kind != ScalarKind::Load || scalar.buffer != buffer) continue;
      scalar.index = padded(scalar.index, row, longer);
      if (divides(scalar.index)) return false;
    }
    for (Step& step : kernel.steps) {
      if (makes_register(step) || step.buffer != buffer) continue;
      step.index = padded(step.index, row, longer);
      if (divides(step.index)) return false;
    }
  }
  Expr& size = program.buffers[buffer].size;
  size = size.constant() / row * longer;
  return true;
}

}  // namespace

Program pad_rows(const Program& program) {
  Program result = program;
  for (const Kernel& kernel : program.kernels) {
    const LibraryMatch match = library_matmul(program, kernel);
    if (!match.matmul) continue;
    for (const LibraryMatrix& matrix : {match.matmul->a, match.matmul->b, match.matmul->d}) {
      const Buffer& buffer = result.buffers[matrix.buffer];
      const int64_t row = ragged_row(buffer);
      if (row == 0 || buffer.size != product(buffer.type.shape)) continue;
      const int64_t each = kAligned / size_of(matrix.dtype);
      Program longer = result;
      if (pad(longer, matrix.buffer, row, ceil_divide(row, each) * each))
        result = std::move(longer);
    }
  }
  return result;
}

}  // namespace tiny_compile
