// 05-3 ★★ The part that nobody reads
//
// DCE removes nodes that nobody reads. It cannot remove half of one:
//   %3: f32[12] = concat %0, %1, %2 {axis=0}                         %0 to %2: f32[4]
//   %4: f32[3] = slice %3 {axis=0, start=5, stop=8, step=1}          reads %1 alone
// becomes
//   %4: f32[3] = slice %1 {axis=0, start=1, stop=4, step=1}
// and the code that made %0 and %2 is dead. Models do this all the time: one big projection, cut
// into queries, keys and values, of which a layer uses some.
//
// Write the pass. A slice of a concat along the same axis keeps only those parts in which it reads
// an element: of one part it becomes a slice, of several a slice of a smaller concat. (From the
// first part that it reads to the last; leave it at that, also for a step that jumps over one.)
// Everything else stays as it is. What dies is left to dce.
//
//   node.attr(Key::start)         an Expr, as each size in node.type.shape is; here all of them are
//                                 numbers, and .constant() is the int64_t
//   node.set(Key::start, {1})     replaces it
//
// out.append() may move the nodes: copy the concat before you append.
#pragma once

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/passes/passes.h"

namespace exercise {

using namespace tiny_compile;

Graph trim_concats(const Graph& graph);

inline Pipeline with_mine() {
  return insert_after(default_pipeline(), "cse", {"trim_concats", trim_concats});
}

}  // namespace exercise
