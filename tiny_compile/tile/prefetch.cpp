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

#include "tiny_compile/loops/asked_ahead.h"

namespace tiny_compile {
namespace {

// The axes of the row that another block has, as values of their names.
Substitution axes_of_row(const Lowering& l, const Expr& block) {
  Expr row = substitute(l.rows.start(), {{block_of(l.tile).symbol(), block}});
  if (l.rows.covers_more) row = min(row, l.rows.count - 1);
  return unflatten(l.kernel, row_axes(l.kernel), row);
}

}  // namespace

Body ask_prefetch(const Lowering& l, const Share& k) {
  const std::vector<int> loads = asked_of_later_blocks(l.kernel);
  if (loads.empty()) return {};
  const int64_t ahead = l.kernel.schedule->prefetch,
                many = std::min(side_by_side(k.layout), k.count.constant());
  const Expr element = l.kernel.axes[l.inner[0]].symbol();
  Substitution begin = {{lane_of_warp().symbol(), 0}};
  if (k.registers > 1) begin.push_back({k.r().symbol(), 0});
  const Expr later = Expr::index("later", l.tile.grid), first = substitute(k.start(), begin);
  Substitution places = axes_of_row(l, later);
  places.push_back({element.symbol(), first});
  Body asks = {let("later", l.tile.grid, min(block_of(l.tile) + ahead, l.tile.grid - 1))};
  for (int id : loads) {
    const Scalar& load = l.kernel.scalars[id];
    const Expr last = l.program.buffers[load.buffer].size - many;
    asks.push_back(ahead_of(load.buffer, min(substitute(load.index, places), last), many));
  }
  if (first.bounds().high >= k.count.constant())
    asks = {if_less(first, k.count, std::move(asks))};
  return {if_less(lane_of_warp(), 1, std::move(asks))};
}

}  // namespace tiny_compile
