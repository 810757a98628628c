// 08-1 ★ One loop or two?
//
//   rows(i0: 64, i1: 100) { store y[i0*100 + i1] = exp(load x[i0*100 + i1]) }
// =>
//   rows(i0: 6400) { store y[i0] = exp(load x[i0]) }
// Two neighbouring rows may be one loop m = i0*100 + i1 where nothing in the kernel can tell the
// difference: every index knows of the two only their sum i0*100 + i1, or a multiple of it, or
// nothing. x[i0 + i1*64] (a transpose) tells, and so does x[i1] (a broadcast).
//
// Write the test. Indices are those of all scalars (Load, Index and Philox use theirs, of the
// others it is the constant 0) and of all steps. Helpers in tiny_compile/base/expr.h:
//   substitute(expr, {{"i0", 0}, {"i1", m}})   replaces symbols, all at once, and simplifies
//   floor_div(m, 100), mod(m, 100), ==         the canonical form: equal sums compare equal
#pragma once

#include "tiny_compile/compile/pipeline.h"

namespace exercise {

using namespace tiny_compile;

// Whether rows a and a + 1 of the kernel may be one loop.
bool one_loop(const Kernel& kernel, int a);

// (a: 64, b: 100) => (m: 6400), for rows that may.
inline Kernel join_two(Kernel kernel, int a) {
  const Axis first = kernel.axes[a], second = kernel.axes[a + 1];
  const Axis both{"m" + second.name, first.extent * second.extent};
  const Substitution names = {{first.name, 0}, {second.name, both.symbol()}};
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, names);
  for (Step& step : kernel.steps) step.index = substitute(step.index, names);
  kernel.axes[a] = both;
  kernel.axes.erase(kernel.axes.begin() + a + 1);
  kernel.rows--;
  for (Step& step : kernel.steps) {
    for (int& axis : step.inner) axis--;
  }
  return normalize(std::move(kernel));
}

inline Program join_rows(Program program) {
  for (Kernel& kernel : program.kernels) {
    for (int a = 0; a + 1 < kernel.rows;) {
      if (one_loop(kernel, a))
        kernel = join_two(std::move(kernel), a);
      else
        a++;
    }
  }
  return program;
}

inline Pipeline with_mine() {
  return insert_after(
      default_pipeline(), "lower",
      {"join_rows", ProgramPass([](const Program& p) { return join_rows(p); })});
}

}  // namespace exercise
