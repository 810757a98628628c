// A topk is a sort of which a slice reads the first places. Where a view reads them, nobody needs
// the others, which cost memory and most of the sort's work:
//
//   temp t: i64[4096,128]    sort t[i0*128 + j0] for (j0: 128) = argsort load x[i0*128 + j0]
//                            store y[i0*4 + j0] for (j0: 4) = load t[i0*128 + j0]
// =>
//   temp t: i64[4096,4]      sort t[i0*4 + j0] for (j0: 128) = argsort .. where lt(j0, 4)
//                            store y[i0*4 + j0] for (j0: 4) = load t[i0*4 + j0]
#include "tiny_compile/loops/shorten_sorts.h"

#include <algorithm>

#include "tiny_compile/loops/split_sort.h"

namespace tiny_compile {
namespace {

// i*128 + j  =>  i*4 + j
Expr shortened(const Expr& index, int64_t row, int64_t first) {
  return floor_div(index, row) * first + mod(index, row);
}

// The length of the buffer's rows, if each is one that the kernel sorts; else 0.
int64_t sorted_row(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  if (kernel.schedule || step.kind != StepKind::Sort || step.mask >= 0 || step.rhs >= 0 ||
      !step.limit.is_constant(0))
    return 0;
  const Buffer& buffer = program.buffers[step.buffer];
  const Shape& shape = buffer.type.shape;
  if (buffer.role != Role::Temporary || shape.empty() || !shape.back().is_constant() ||
      buffer.size != product(shape))
    return 0;
  const int64_t row = shape.back().constant();
  const bool is_row = inner_count(kernel, step).is_constant(row) && row > 1 &&
                      mod(step.index, row) == kernel.axes[step.inner[0]].symbol();
  return is_row && row <= kSortedRun ? row : 0;
}

// How many first places of each row all readers together need; the whole row, where that is not seen.
int64_t places_read(const Program& program, int buffer, int64_t row) {
  int64_t most = 0;
  for (const Kernel& kernel : program.kernels) {
    for (const Scalar& scalar : kernel.scalars) {
      if (scalar.kind != ScalarKind::Load || scalar.buffer != buffer) continue;
      const Interval place = mod(scalar.index, row).bounds();
      most = std::max(most, place.low < 0 ? row : place.high + 1);
    }
  }
  return std::clamp<int64_t>(most, 1, row);
}

void shorten(Program& program, Kernel& sort, int64_t row, int64_t first) {
  Step& step = sort.steps[0];
  ScalarTable table(sort);
  step.mask = table.apply(Op::lt, DType::boolean,
                          {table.index(sort.axes[step.inner[0]].symbol()), table.index(first)});
  step.index = shortened(step.index, row, first);
  Buffer& buffer = program.buffers[step.buffer];
  buffer.type.shape.back() = first;
  buffer.size = product(buffer.type.shape);
  for (Kernel& kernel : program.kernels) {
    bool reads = false;
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.kind != ScalarKind::Load || scalar.buffer != step.buffer) continue;
      scalar.index = shortened(scalar.index, row, first);
      reads = true;
    }
    if (reads) kernel = normalize(std::move(kernel));
  }
  sort = normalize(std::move(sort));
}

}  // namespace

Program shorten_sorts(Program program) {
  for (Kernel& kernel : program.kernels) {
    const int64_t row = kernel.steps.empty() ? 0 : sorted_row(program, kernel);
    if (row == 0) continue;
    const int64_t first = places_read(program, kernel.steps[0].buffer, row);
    if (first < row) shorten(program, kernel, row, first);
  }
  return program;
}

}  // namespace tiny_compile
