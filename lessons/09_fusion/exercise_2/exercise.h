// 09-2 ★★ Readers of one buffer
//
//   rows(i0: 257) { r0 = sum(j0: 1001) load x[...] ; store a[i0] = r0 }
//   rows(i0: 257) { r0 = max(j0: 1001) load x[...] ; store b[i0] = r0 }
// Neither waits for the other, so no consumer is merged into its producer. But both read x, a
// megabyte, and together they would read it once.
//
// Write the pass. Two kernels that load the same buffer, and of which neither waits for the
// other, not even by way of others, become one where merged_with_sibling (greedy.h) does not
// refuse. It refuses where no read is shared. A way through a third kernel it cannot see. Go on
// until no two are left: three readers become one kernel. The merged kernel takes the place of the
// first; with_kernels (greedy.h) puts the kernels into an order in which they may run, and throws
// where they wait for each other in a ring.
#pragma once

#include "lessons/09_fusion/greedy.h"
#include "tiny_compile/compile/pipeline.h"

namespace exercise {

using namespace tiny_compile;
using lessons::Merged, lessons::merged_with_sibling, lessons::reads_from, lessons::with_kernels;

Program join_readers(const Program& program);

// The small fusion of greedy.h, then yours.
inline Pipeline with_mine() {
  return replace(default_pipeline(), "fuse", [](const Program& program) {
    return join_readers(lessons::fuse_greedily(program));
  });
}

}  // namespace exercise
