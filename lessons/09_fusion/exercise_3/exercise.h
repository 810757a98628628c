// 09-3 ★★★ Unrelated kernels, one launch
//
// An optimiser step has a kernel for each parameter. They share no buffer, so fuse never looks at
// them as a pair. Each launch costs microseconds, more than a small parameter's arithmetic.
//   rows(i0: 257) { store y3[i0] = sub(load a[i0], load da[i0]) }
//   rows(i0: 257) { store y5[i0] = sub(load b[i0], load db[i0]) }
// =>
//   rows(i0: 257) { store y3[i0] = sub(load a[i0], load da[i0])
//                   store y5[i0] = sub(load b[i0], load db[i0]) }
//
// Write this horizontal fusion. Two kernels become one where
//   * neither waits for the other, not even by way of others;
//   * their rows have the same extents in the same order: the steps' inner loops may differ;
//   * neither has a Dot, Scan or Scatter step;
//   * both together have at most kMostSteps steps.
// Take the kernels in order, and let each join the first earlier one that takes it. with_kernels
// (greedy.h) orders them. The merged kernel has the steps of the first, then those of the
// second. What to watch: scalars name other scalars and steps by number, and axes by name.
// splice (loops/clone_with_mapping.h, quoted in the lesson) copies them: how.axes pairs the names of the
// source's axes with expressions of the target's, how.first_step moves registers. Kernel, Axis and
// Step are in loops/program.h; normalize() there names axes anew.
#pragma once

#include "lessons/09_fusion/greedy.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/clone_with_mapping.h"

namespace exercise {

using namespace tiny_compile;
using lessons::both_names, lessons::reads_from, lessons::with_kernels;

inline constexpr size_t kMostSteps = 12;

Program launch_together(const Program& program);

inline Pipeline with_mine() {
  return insert_after(default_pipeline(), "fuse", {"launch_together", launch_together});
}

}  // namespace exercise
