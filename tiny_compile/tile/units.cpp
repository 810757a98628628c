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
namespace {

// The row at hand of those over all axes but the last.
struct Outer {
  std::vector<int> axes;
  Expr row = 0;
  bool is_axis = false;
};

Outer outer_of(const Program& program, const Kernel& kernel) {
  Outer outer;
  outer.axes = row_axes(kernel);
  outer.axes.pop_back();
  outer.is_axis = outer.axes.size() == 1;
  outer.row = outer.is_axis ? kernel.axes[0].symbol()
                            : Expr::index(unused(program, "row"), outer_rows_of(kernel));
  return outer;
}

}  // namespace

Expr outer_rows_of(const Kernel& kernel) {
  Expr rows = 1;
  for (int axis = 0; axis + 1 < kernel.rows; axis++)
    rows = rows * kernel.axes[static_cast<size_t>(axis)].extent;
  return rows;
}

Body over_whole_rows(const Program& program, const Kernel& kernel, const Tile& tile,
                     const std::function<Body()>& units) {
  const Outer outer = outer_of(program, kernel);
  Body body = outer.is_axis ? Body() : unpack(kernel, outer.axes, outer.row, {});
  append(body, units());
  return {for_range(outer.row.name(), outer_rows_of(kernel), begin_of(tile), end_of(tile),
                    std::move(body))};
}

Body over_rows(const Program& program, const Kernel& kernel, const Tile& tile,
               const Expr& count, const std::function<Body(const Expr&, const Expr&)>& units) {
  const Expr begin = begin_of(tile), end = end_of(tile);
  if (kernel.rows == 1) return units(begin, end);
  const Outer outer = outer_of(program, kernel);
  const Expr row = outer.row, rows = outer_rows_of(kernel);
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
