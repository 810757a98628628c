// Why does a product of 50257 columns take eight times as long as one of 50264? Its rows start
// at odd addresses, and the library's fast kernels want 16 bytes, of operands as well. A temporary's
// layout is ours:
//
//   temp t: bf16[8192,50257]                    store t[i*50257 + j]
// =>
//   temp t: bf16[8192,50257] size=411762688     store t[i*50264 + j]
//
// What the caller is given has the layout that they asked for. Where it is halves and the library loses more than a
// copy takes, the product goes to a temporary, which all kernels read, and a kernel at the end copies it.
#include "tiny_compile/loops/pad_rows.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/copy_kernel.h"
#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/loops/split.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAligned = 16;     // bytes
constexpr int64_t kWorthwhile = 64;  // elements of a row
constexpr double kOfRest =
    2.5;  // of a copied element, for each that the rest's call multiplies

// i*50257 + j  =>  i*50264 + j
Expr padded(const Expr& index, int64_t row, int64_t longer) {
  return floor_div(index, row) * longer + mod(index, row);
}

// The row's length, 0 where there is nothing to gain.
int64_t ragged_row(const Buffer& buffer, Role role) {
  if (buffer.role != role || buffer.type.shape.size() < 2) return 0;
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

// Whether a result is worth a copy, and a call more for what is over (library_calls).
bool pays(const LibraryMatmul& x) {
  const double products =
                   static_cast<double>(x.batches.empty() ? 1 : x.batches[0].count * x.calls()),
               rows = products * static_cast<double>(x.n),
               takes = rows * (static_cast<double>(x.m) + kOfRest * static_cast<double>(x.k)) +
                       2 * kLaunchInElements;
  return is_half(x.d.dtype) && lost_by_odd_axis(x.m, products, x.n, x.m, x.k) > takes;
}

// The product writes a temporary, everyone reads that, and the last kernel copies it into `result`.
Program with_copy(Program program, int product, int result, int64_t row) {
  const Buffer given = program.buffers[result];
  const int made =
      add_temporary(program, "t", str(given.name, "_padded"), given.type, given.size);
  for (Kernel& kernel : program.kernels) {
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.kind == ScalarKind::Load && scalar.buffer == result) scalar.buffer = made;
    }
  }
  for (Step& step : program.kernels[product].steps) {
    if (!makes_register(step) && step.buffer == result) step.buffer = made;
  }
  const std::vector<Axis> axes = {{"i0", given.size.constant() / row}, {"i1", row}};
  const Expr place = axes[0].symbol() * row + axes[1].symbol();
  Kernel copy = copy_kernel(program, axes, {made, place}, {result, place});
  copy.name = "copy_" + program.kernels[product].name;
  copy.where = program.kernels[product].where;
  program.launches.push_back({static_cast<int>(program.kernels.size())});
  program.kernels.push_back(std::move(copy));
  return program;
}

// Results that the caller is given, by way of temporaries with longer rows.
Program copy_results(Program program) {
  const int count = static_cast<int>(program.kernels.size());
  for (int k = 0; k < count; k++) {
    if (schedule_of(program.kernels[k]).strategy != Strategy::Library) continue;
    const LibraryMatch match = library_matmul(program, program.kernels[k]);
    if (!match.matmul || !pays(*match.matmul)) continue;
    const int result = match.matmul->d.buffer;
    const Buffer& buffer = program.buffers[result];
    const int64_t row = ragged_row(buffer, Role::Output);
    if (row != match.matmul->m || buffer.size != product(buffer.type.shape)) continue;
    Program longer = with_copy(program, k, result, row);
    const int made = static_cast<int>(longer.buffers.size()) - 1;
    if (pad(longer, made, row, whole_packs(row, buffer.type.dtype)))
      program = std::move(longer);
  }
  return program;
}

}  // namespace

Program pad_rows(const Program& program) {
  Program result = program;
  for (const Kernel& kernel : program.kernels) {
    const LibraryMatch match = library_matmul(program, kernel);
    if (!match.matmul) continue;
    for (const LibraryMatrix& matrix : {match.matmul->a, match.matmul->b, match.matmul->d}) {
      const Buffer& buffer = result.buffers[matrix.buffer];
      const int64_t row = ragged_row(buffer, Role::Temporary);
      if (row == 0 || buffer.size != product(buffer.type.shape)) continue;
      Program longer = result;
      if (pad(longer, matrix.buffer, row, whole_packs(row, matrix.dtype)))
        result = std::move(longer);
    }
  }
  return copy_results(std::move(result));
}

}  // namespace tiny_compile
