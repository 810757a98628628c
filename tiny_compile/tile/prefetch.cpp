// How does a kernel keep the memory busy while it computes? Where registers allow few rows at a time, all of
// them may compute at once, and the memory waits. So one lane of a warp says which bytes come next, and
// they are on their way to the L2 cache, without a register:
//
//   softmax over 32000, prefetch=48   =>   if lane < 1 {
//                                         later: 4096 = min(block + 48, 4095)
//                                         prefetch x[min(later*32000 + warp*1024, 131070976)] x1024
//                                       }
//
// Not too early: what is asked for more than a few rows ahead falls out of the cache again.
#include "tiny_compile/tile/prefetch.h"

#include <algorithm>

#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {
namespace {

// Elements of a warp, where they are neighbours; else 0.
int64_t side_by_side(const Share& k) {
  const int64_t of_warp = 32 * k.registers * k.vector;
  const auto is_warps = [](const Bit& bit) {
    return bit.level == Level::Lane || is_own(bit.level);
  };
  int64_t inside = 1;
  for (const Bit& bit : k.bits) {
    if (is_warps(bit) && bit.stride < of_warp) inside *= 2;
  }
  return inside == of_warp && k.turns == 1 ? of_warp : 0;
}

// The axes of the row that another block has, as values of their names.
Substitution axes_of_row(const Lowering& l, const Expr& block) {
  Expr row = substitute(l.rows.start(), {{block_of(l.tile).symbol(), block}});
  if (l.rows.covers_more) row = min(row, l.rows.count - 1);
  return unflatten(l.kernel, row_axes(l.kernel), row);
}

}  // namespace

Body ask_prefetch(const Lowering& l, const std::vector<int>& ids, const Share& k) {
  if (!k.count.is_constant() || !l.tile.grid.is_constant()) return {};
  const int64_t ahead = l.kernel.schedule->prefetch,
                many = std::min(side_by_side(k), k.count.constant());
  if (ahead == 0 || l.tile.grid.bounds().high <= ahead || many == 0 || l.inner.size() != 1 ||
      l.row_registers() != 1 || l.kernel.schedule->outer > 0)
    return {};
  const Expr element = l.kernel.axes[l.inner[0]].symbol();
  const Expr later = Expr::index("later", l.tile.grid),
             first = substitute(k.start(), {{lane_of_warp().symbol(), 0}, {k.r().symbol(), 0}});
  Substitution places = axes_of_row(l, later);
  places.push_back({element.symbol(), first});
  Body asks;
  for (int id : ids) {
    const Scalar& load = l.kernel.scalars[id];
    if (load.kind != ScalarKind::Load || load.mask >= 0 || !load.operands.empty() ||
        l.axes[id] == uint64_t{1} << l.inner[0] || !is_contiguous(load.index, element, 1))
      continue;
    const Expr last = l.program.buffers[load.buffer].size - many;
    asks.push_back(ahead_of(load.buffer, min(substitute(load.index, places), last), many));
  }
  if (asks.empty()) return {};
  asks.insert(asks.begin(),
              let("later", l.tile.grid, min(block_of(l.tile) + ahead, l.tile.grid - 1)));
  if (first.bounds().high >= k.count.constant())
    asks = {if_less(first, k.count, std::move(asks))};
  return {if_less(lane_of_warp(), 1, std::move(asks))};
}

}  // namespace tiny_compile
