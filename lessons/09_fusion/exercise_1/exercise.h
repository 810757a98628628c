// 09-1 ★ What lies between?
//
// Kernel P writes t, kernel C reads it. If a third kernel Q waits for P, and C waits for Q, then P
// and C must stay apart: as one kernel they would wait for Q, which waits for them.
//   P -> Q -> C
//   P ------> C
// Write the test. `producer` and `consumer` are numbers of program.kernels. It is true where some
// way leads from the producer to the consumer through at least one other kernel, however many.
//
// reads_from(program, later, earlier) of greedy.h says whether one kernel reads what another
// writes. Kernels stand in an order in which they may run: whoever waits stands behind. (greedy.h
// also has would_make_a_ring, which merges the two and catches the exception. It would pass here,
// and it is what yours replaces: look at who waits, merge nothing.)
#pragma once

#include "lessons/09_fusion/greedy.h"
#include "tiny_compile/compile/pipeline.h"

namespace exercise {

using namespace tiny_compile;
using lessons::reads_from;

bool lies_between(const Program& program, int producer, int consumer);

// The small fusion of greedy.h, with your test.
inline Pipeline with_mine() {
  return replace(default_pipeline(), "fuse", [](const Program& program) {
    return lessons::fuse_greedily(program, lies_between);
  });
}

}  // namespace exercise
