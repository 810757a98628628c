// Which rows has a thread units of? It is handed begin .. end - 1 of them, counted flat:
//
//   rows(i0: 64, i1: 100), a unit each
// =>
//   for i0: 64 = begin/100 .. (end + 99)/100 {
//     first: 100 = max(begin - i0*100, 0)
//     last: 101 = min(end - i0*100, 100)
//     ...
//   }
//
// Of short rows a unit each: what their loops do is then known, and hardly any time goes into where they begin.
#include "tiny_compile/tile/units.h"

#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {

// The last axis but for it, and all rows over the others, of which one is at hand.
struct Outer {
  std::vector<int> axes;
  Expr rows = 1, row;
  bool is_axis;
};

static Outer outer_of(const Program& program, const Kernel& kernel) {
  Outer outer{row_axes(kernel), 1, 0, kernel.rows == 2};
  outer.axes.pop_back();
  for (int axis : outer.axes)
    outer.rows = outer.rows * kernel.axes[static_cast<size_t>(axis)].extent;
  outer.row =
      outer.is_axis ? kernel.axes[0].symbol() : Expr::index(unused(program, "row"), outer.rows);
  return outer;
}

Body over_whole_rows(const Program& program, const Kernel& kernel, Tile& tile,
                     const std::function<Body()>& units) {
  const Outer outer = outer_of(program, kernel);
  tile.units = outer.rows;
  Body body = outer.is_axis ? Body() : unpack(kernel, outer.axes, outer.row, {});
  append(body, units());
  return {
      for_range(outer.row.name(), outer.rows, begin_of(tile), end_of(tile), std::move(body))};
}

Body over_rows(const Program& program, const Kernel& kernel, const Tile& tile,
               const Expr& count, const std::function<Body(const Expr&, const Expr&)>& units) {
  const Expr begin = begin_of(tile), end = end_of(tile);
  if (kernel.rows == 1) return units(begin, end);
  const Outer outer = outer_of(program, kernel);
  const Expr &row = outer.row, &rows = outer.rows;
  const Expr first = Expr::index(unused(program, "first"), count),
             last = Expr::index(unused(program, "last"), count + 1);
  Body body = outer.is_axis ? Body() : unpack(kernel, outer.axes, row, {});
  body.push_back(let(first.name(), count, max(begin - row * count, 0)));
  body.push_back(let(last.name(), count + 1, min(end - row * count, count)));
  append(body, units(first, last));
  return {for_range(row.name(), rows, floor_div(begin, count), min(ceil_div(end, count), rows),
                    std::move(body))};
}

}  // namespace tiny_compile
