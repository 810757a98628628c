// Which rows has a thread units of? It is handed begin .. end - 1 of them, counted flat:
//
//   rows(i0: 64, i1: 100), a unit each
// =>
//   for i0: 64 = begin/100 .. (end + 99)/100 {
//     first: 100 = max(begin - i0*100, 0)
//     last: 101 = min(end - i0*100, 100)
//     ...
//   }
#include "tiny_compile/tile/units.h"

#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {

Body over_rows(const Program& program, const Kernel& kernel, const Tile& tile,
               const Expr& count, const std::function<Body(const Expr&, const Expr&)>& units) {
  const Expr begin = begin_of(tile), end = end_of(tile);
  if (kernel.rows == 1) return units(begin, end);
  std::vector<int> outer = row_axes(kernel);
  outer.pop_back();
  Expr rows = 1;
  for (int axis : outer) rows = rows * kernel.axes[static_cast<size_t>(axis)].extent;
  const bool is_axis = outer.size() == 1;
  const Expr row =
                 is_axis ? kernel.axes[0].symbol() : Expr::index(unused(program, "row"), rows),
             first = Expr::index(unused(program, "first"), count),
             last = Expr::index(unused(program, "last"), count + 1);
  Body body = is_axis ? Body() : unpack(kernel, outer, row, {});
  body.push_back(let(first.name(), count, max(begin - row * count, 0)));
  body.push_back(let(last.name(), count + 1, min(end - row * count, count)));
  append(body, units(first, last));
  return {for_range(row.name(), rows, floor_div(begin, count), min(ceil_div(end, count), rows),
                    std::move(body))};
}

}  // namespace tiny_compile
