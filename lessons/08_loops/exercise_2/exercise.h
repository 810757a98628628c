// 08-2 ★★ Four at a time
//
// Vector units add four or eight numbers at once. So split the loop of a reduction by four:
//   r0 = max(j: 1001) load x[j]
// =>
//   r0 = max(jo: 251, ji: 4) <load x[jo*4 + ji] if jo*4 + ji < 1001, and otherwise what changes
//                             nothing>
// The last turn has one element and three that do not exist. They must not be loaded, and what
// stands in for them must not change the result: identity(op, dtype) of loops/program.h is that
// value (-inf for max, -0.0 for sum).
//
// Write the pass for a kernel with one inner axis, whose every step inside it is a Reduce with
// sum, max, min or prod. (A sum keeps its bits: see "Numbers" in tiny_compile/README.md.) The new
// inner loops have extents ceil(n/4) and 4, and the steps inside list both, in this order. Where
// four divides n there is no tail, and no mask either. The other steps stay.
//
// splice of loops/clone_with_mapping.h copies scalars: how.axes says what the old axis is now, how.mask is a
// scalar under which each copied load happens. What you want copied must be marked with all that
// it is computed from, as reachable(kernel, step) does; an empty list copies everything, and
// normalize drops what no step needs. ScalarTable (loops/program.h) makes scalars:
//   table.index(e), table.apply(Op::lt, DType::boolean, {a, b}), table.constant(literal)
#pragma once

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/clone_with_mapping.h"

namespace exercise {

using namespace tiny_compile;

// A kernel for which takes_fours holds, its inner axis split; then normalize()d.
Kernel by_fours(const Kernel& kernel);

inline bool takes_fours(const Kernel& kernel) {
  if (static_cast<int>(kernel.axes.size()) != kernel.rows + 1) return false;
  for (const Step& step : kernel.steps) {
    const bool plain =
        step.op == Op::sum || step.op == Op::max || step.op == Op::min || step.op == Op::prod;
    if (step.inner.empty() ? step.kind != StepKind::Store
                           : step.kind != StepKind::Reduce || !plain)
      return false;
  }
  return true;
}

inline Program all_by_fours(Program program) {
  for (Kernel& kernel : program.kernels) {
    if (takes_fours(kernel)) kernel = by_fours(kernel);
  }
  return program;
}

// Before schedule, which joins two such loops again where there is no tail.
inline Pipeline with_mine() {
  return insert_after(
      default_pipeline(), "lower",
      {"by_fours", ProgramPass([](const Program& p) { return all_by_fours(p); })});
}

}  // namespace exercise
