// What can be asked for is known before it is read: neither a mask nor data chooses it, and it lies side by side:
//
//   sum(j0: 3000) load x[i0*3000 + j0]    loop warp 4 · register 32 · lane 32    a warp has 1024 neighbours: x
//                                         loop register 32 · lane 32 · warp 4    every 128th 32: nothing
//   sum(j0: 3000) load x[i0 + j0*500]     neighbours are 500 apart: nothing
//
// Rows that fold have one block for all of them: while it has one, it asks for its next, and for what later passes
// read.
#include "tiny_compile/loops/asked_ahead.h"

#include <algorithm>
#include <functional>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

// Loads of a row's elements, side by side in the only loop, that steps need, but for what only known values are made
// of.
std::vector<int> streams_of(const Kernel& kernel, const std::vector<int>& pass,
                            const std::function<bool(int)>& is_known) {
  const std::vector<int>& inner = kernel.steps[pass[0]].inner;
  if (inner.size() != 1 || !kernel.axes[inner[0]].extent.is_constant()) return {};
  const Expr element = kernel.axes[inner[0]].symbol();
  std::vector<int> ids = evaluated(kernel, pass, is_known);
  std::erase_if(ids, [&](int id) {
    const Scalar& load = kernel.scalars[id];
    return !is_plain(load) || !depends_on_rows(kernel, load.index) ||
           !is_contiguous(load.index, element, 1);
  });
  return ids;
}

bool is_nothing(int) { return false; }

// Places that data chooses for each of a thread's registers are known before what they choose is read; what they are
// made of is long there.
std::vector<bool> places_chosen(const Kernel& kernel, const std::vector<int>& pass,
                                const Layout& loop) {
  std::vector<bool> chosen(kernel.scalars.size());
  if (extent_of(loop, Level::Register) == 1) return chosen;
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  for (int id : evaluated(kernel, pass, is_nothing)) {
    const Scalar& load = kernel.scalars[id];
    if (load.limits.empty()) continue;
    for (int place : load.operands)
      chosen[place] = (axes[place] >> kernel.steps[pass[0]].inner[0] & 1) != 0;
  }
  return chosen;
}

std::vector<int> streams_of_first(const Kernel& kernel) {
  const std::vector<int> pass = gathered_sweeps_of(kernel)[0];
  const std::vector<bool> chosen =
      places_chosen(kernel, pass, layout_over(kernel, kernel.steps[0].inner));
  return streams_of(kernel, pass, [&](int id) -> bool { return chosen[id]; });
}

std::string why_no_later_block(const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  const std::vector<int>& inner = kernel.steps[0].inner;
  const Expr grid = grid_of(kernel).all();
  if (!makes_register(kernel.steps[0]) || inner.size() != 1)
    return "the first step is no reduction over one loop";
  if (!grid.is_constant() || !kernel.axes[inner[0]].extent.is_constant())
    return "where sizes are symbols, none is asked for";
  if (grid.constant() <= s.prefetch) return str("there are ", grid, " blocks");
  if (s.outer > 0 || own_elements(s.rows) > 1)
    return "blocks of an outer row axis, and threads of several rows, ask for none";
  if (side_by_side(layout_over(kernel, inner)) == 0)
    return "a warp's elements of the loop are not side by side, at once";
  return streams_of_first(kernel).empty()
             ? "no load of a row, without a mask or a place that data chooses, has the loop's "
               "neighbours side by side"
             : "";
}

std::string why_no_later_row(const Kernel& kernel) {
  if (kernel.schedule->prefetch > 1) return "rows that fold ask for the next, prefetch=1";
  const auto asked = asked_of_rows(kernel, gathered_sweeps_of(kernel));
  const auto is_any = [](const AskedOfRow& asks) { return !asks.loads.empty(); };
  const bool has_turns = extent_of(kernel.schedule->rows, Level::Serial) > 1;
  return std::any_of(asked.begin() + (has_turns ? 0 : 1), asked.end(), is_any)
             ? ""
             : "no load of a row that comes later has a loop's neighbours side by side";
}

}  // namespace

int64_t side_by_side(const Layout& loop) {
  const int64_t of_warp = 32 * own_elements(loop);
  int64_t inside = 1;
  for (const Bit& bit : bits_in_order(loop)) {
    const bool is_of_warp = bit.level == Level::Lane || is_own(bit.level);
    if (is_of_warp && bit.stride < of_warp) inside *= 2;
  }
  return inside == of_warp && extent_of(loop, Level::Serial) == 1 ? of_warp : 0;
}

std::vector<int> asked_of_later_blocks(const Kernel& kernel) {
  const bool asks = kernel.schedule->prefetch > 0 && !folds_rows(kernel) &&
                    why_no_later_block(kernel).empty();
  return asks ? streams_of_first(kernel) : std::vector<int>();
}

std::vector<AskedOfRow> asked_of_rows(const Kernel& kernel,
                                      const std::vector<std::vector<int>>& passes) {
  std::vector<AskedOfRow> asked;
  if (!folds_rows(kernel) || kernel.schedule->prefetch == 0) return asked;
  std::vector<int> seen;
  for (const std::vector<int>& pass : passes) {
    std::vector<int> fresh = streams_of(kernel, pass, is_nothing);
    std::erase_if(fresh, [&](int id) { return std::count(seen.begin(), seen.end(), id) > 0; });
    seen.insert(seen.end(), fresh.begin(), fresh.end());
    asked.push_back({fresh.empty() ? -1 : kernel.steps[pass[0]].inner[0], std::move(fresh)});
  }
  return asked;
}

std::string why_nothing_asked(const Kernel& kernel) {
  return folds_rows(kernel) ? why_no_later_row(kernel) : why_no_later_block(kernel);
}

}  // namespace tiny_compile
