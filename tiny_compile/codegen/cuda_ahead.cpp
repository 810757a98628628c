// How does a kernel that folds keep the memory busy while it computes? Registers allow few rows at a
// time: all of them may compute at once, and the memory waits. So one lane says which bytes come
// next, and they are on their way to the L2 cache, without a register:
//
//   if (lane == 0 && turn + 1 < 8) {
//     const int ahead = (blockIdx.x * 4 + warp) * 8 + turn + 1;
//     const int i0 = ahead;
//     tc_ahead(in_x0 + i0*768, 768);
//   }
#include "tiny_compile/codegen/cuda_ahead.h"

#include <algorithm>

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cuda_fold.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {
namespace {

// Loads of a row's elements, next to each other in memory, that these steps need.
std::vector<int> streams_of(const CudaText& text, const std::vector<int>& pass) {
  const Kernel& kernel = text.kernel;
  std::vector<const Step*> steps;
  for (int s : pass) steps.push_back(&kernel.steps[s]);
  std::vector<int> streams;
  if (steps[0]->inner.size() != 1) return streams;
  const Expr element = kernel.axes[steps[0]->inner[0]].symbol();
  for (int id : text.needed(steps)) {
    const Scalar& s = kernel.scalars[id];
    if (is_plain(s) && depends_on_rows(kernel, s.index) && distance(s.index, element) == 1)
      streams.push_back(id);
  }
  return streams;
}

// `count` elements of each from `first` on.
void ask(CudaText& text, const std::vector<int>& streams, int axis, const Expr& first,
         const std::string& count) {
  for (int id : streams) {
    const Scalar& s = text.kernel.scalars[id];
    const Expr start = substitute(s.index, {{text.kernel.axes[axis].name, first}});
    text.out.line(str(text.calls("tc_ahead"), "(", pointer_name(text.program.buffers[s.buffer]),
                      " + ", text.scalars.index(start), ", ", count, ");"));
  }
}

// A whole row for a pass.
void ask_for_row(CudaText& text, const std::vector<int>& pass,
                 const std::vector<int>& streams) {
  const Step& step = text.kernel.steps[pass[0]];
  ask(text, streams, step.inner[0], 0, str(inner_count(text.kernel, step).constant()));
}

}  // namespace

void ask_for_later_passes(CudaText& text, const std::vector<std::vector<int>>& passes) {
  std::vector<int> seen = streams_of(text, passes[0]);
  for (size_t p = 1; p < passes.size(); p++) {
    std::vector<int> fresh;
    for (int id : streams_of(text, passes[p])) {
      if (std::count(seen.begin(), seen.end(), id) == 0) fresh.push_back(id);
    }
    if (fresh.empty()) continue;
    text.out.open("if (lane == 0)");
    ask_for_row(text, passes[p], fresh);
    text.out.close();
    seen.insert(seen.end(), fresh.begin(), fresh.end());
  }
}

void ask_for_next_turn(CudaText& text, const std::vector<std::vector<int>>& passes) {
  const int64_t turns = fold_shape_of(text.kernel).turns;
  const std::vector<int> streams = streams_of(text, passes[0]);
  if (turns == 1 || streams.empty()) return;
  text.out.open(str("if (lane == 0 && turn + 1 < ", turns, ")"));
  text.declare("ahead", row_of_turn(text, "turn + 1"));
  text.unpack_rows("ahead");
  ask_for_row(text, passes[0], streams);
  text.out.close();
}

}  // namespace tiny_compile
