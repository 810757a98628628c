// Which accesses go along an axis alone, and who reads what of them:
//
//   rows(i0: 777, j0: 1000) { store z[i0*1000 + j0] = load x[i0 + j0*777] }   along i0, across j0
//   =>  load 1, of 4 bytes, one element an access, as 777 is odd
//
//   64 neighbours and 32 lines to 8 warps, 4 elements an access
//   =>  neighbours lane 16 · vector 4    lines register 2 · warp 8 · lane 2 from 16
#include "tiny_compile/schedule/sides.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/legal_via.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {

bool runs_along(const Kernel& kernel, const Expr& index, int axis) {
  return is_contiguous(index, kernel.axes[axis].symbol(), 1);
}

bool Side::has_small() const {
  return std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size <= 2; });
}

Side side_of(const Program& program, const Kernel& kernel, int along,
             const std::vector<int>& across) {
  Side side;
  int64_t smallest = kAccessBytes;
  const auto see = [&](const Expr& index, int b, bool stores, int number, bool can_go_by) {
    const Buffer& buffer = program.buffers[b];
    if (!runs_along(kernel, index, along)) return;
    const int64_t size = size_of(buffer.type.dtype);
    if (can_go_by && depends_on_any(kernel, index, across)) {
      side.accesses.push_back({stores, number, {}, {}, 0, 1});
      side.sizes.push_back(size);
      side.bytes += size;
      side.loads += !stores;
    }
    if (buffer.align < kAccessBytes) return;
    smallest = std::min(smallest, size);
    while (side.vector > 1 &&
           !is_contiguous(index, kernel.axes[along].symbol(), static_cast<int>(side.vector)))
      side.vector /= 2;
  };
  int number = 0;
  for (const Scalar& s : kernel.scalars) {
    if (s.kind == ScalarKind::Load)
      see(s.index, s.buffer, false, ++number, chosen_by_indices(kernel, s));
  }
  number = 0;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store) see(step.index, step.buffer, true, ++number, true);
  }
  side.vector = std::min(side.vector, kAccessBytes / smallest);
  while (side.vector > 1 && !mod(kernel.axes[along].extent, side.vector).is_constant(0))
    side.vector /= 2;
  return side;
}

Dealt dealt(int64_t neighbours, int64_t lines, int64_t vector, int64_t warps, int64_t pieces) {
  const int64_t lanes = std::min(kLanes, neighbours / vector), others = kLanes / lanes,
                of_piece = std::max<int64_t>(1, neighbours / (lanes * vector * pieces)),
                beside = std::min(warps, of_piece), line_warps = warps / beside;
  Dealt d;
  add_part(d.neighbours, Level::Register, neighbours / (beside * lanes * vector));
  add_part(d.neighbours, Level::Warp, beside);
  add_part(d.neighbours, Level::Lane, lanes);
  add_part(d.neighbours, Level::Vector, vector);
  add_part(d.lines, Level::Register, lines / (line_warps * others));
  add_part(d.lines, Level::Warp, line_warps, beside);
  add_part(d.lines, Level::Lane, others, lanes);
  return d;
}

}  // namespace tiny_compile
