// Which loops go over a thread's points? It is handed begin .. end - 1 of them, counted flat, and goes
// over whole and partial rows of the last axis, which the compiler turns into vectors:
//
//   rows(i0: 64, i1: 100) { store y[i0*100 + i1] = exp(load x[i1*64 + i0]) }
// =>
//   for i0: 64 = begin/100 .. (end + 99)/100 {
//     first: 100 = max(begin - i0*100, 0)
//     last: 101 = min(end - i0*100, 100)
//     for i1: 100 = first .. last vector {
//       $0 = load x[i1*64 + i0]
//       $1 = exp($0)
//       store y[i0*100 + i1] = $1
//     }
//   }
//
// Of an operand whose neighbours lie along another axis each line would serve one element: then a
// thread goes over squares, transposes those of such operands into L2 and reads them from there.
#include "tiny_compile/tile/points.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tiny_compile/loops/divided_rows.h"
#include "tiny_compile/loops/ends_of_rows.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/transposed_loads.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/pieces.h"
#include "tiny_compile/tile/square.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/units.h"

namespace tiny_compile {
namespace {

constexpr int64_t kShortRow = 64;  // points

// What the loops go over, while they are written.
struct Points {
  const Program& program;
  Kernel kernel;
  Tile tile{};
  std::map<int, int> blocks{};  // buffer -> the array that is sent there
  int pieces = 0;

  const Axis& last() const { return kernel.axes[static_cast<size_t>(kernel.rows) - 1]; }
};

// The scalars of a part of the points, as the tile has them.
struct Values {
  Kernel kernel;
  std::vector<int> ids;                            // of each the tile's
  std::vector<uint64_t> axes;                      // that it depends on
  std::vector<bool> left;                          // to be defined
  std::map<int, std::pair<int, Expr>> elements{};  // load -> where an array has it
};

Values values_of(Points& p, const Kernel& part, bool is_whole) {
  Values v{over_whole_axes(part), {}, axes_of_scalars(part), {}};
  v.left.resize(part.scalars.size());
  for (const Step& step : v.kernel.steps) {
    const std::vector<bool> used = reachable(v.kernel, step);
    for (size_t id = 0; id < used.size(); id++)
      v.left[id] = v.left[id] || (used[id] && part.scalars[id].kind != ScalarKind::Constant);
  }
  const bool is_own = is_whole && v.kernel.scalars == p.tile.kernel.scalars;
  v.ids.resize(part.scalars.size());
  std::iota(v.ids.begin(), v.ids.end(), 0);
  if (!is_own) v.ids = add_scalars(p.tile, v.kernel);
  return v;
}

// Those that know all they need where these axes have values.
Body define_over(Values& v, uint64_t axes) {
  Body body;
  for (size_t id = 0; id < v.left.size(); id++) {
    if (!v.left[id] || (v.axes[id] & ~axes) != 0) continue;
    v.left[id] = false;
    const auto element = v.elements.find(static_cast<int>(id));
    body.push_back(element == v.elements.end()
                       ? define(v.ids[id])
                       : define_from(v.ids[id], element->second.first, element->second.second));
  }
  return body;
}

// --- loops over the last axis --------------------------------------------------------------------

// What the row knows, then its points, which begin with `each`.
Body loop_over(Points& p, Values& v, const Expr& from, const Expr& to, Body each = {}) {
  const uint64_t rows = (uint64_t{1} << p.kernel.rows) - 1;
  Body body = define_over(v, rows >> 1);
  std::vector<const Step*> steps;
  std::vector<int> values;
  for (const Step& step : v.kernel.steps) {
    steps.push_back(&step);
    values.push_back(v.ids[step.value]);
  }
  append(each, define_over(v, ~uint64_t{0}));
  append(body, store_loop(p.tile, p.blocks, {p.program, p.kernel, p.last(), steps, values},
                          from, to, std::move(each)));
  return body;
}

// --- pieces ----------------------------------------------------------------------------------------

// An integer of this value: itself where it has a name.
Expr named(Points& p, Body& body, const char* name, const Expr& extent, const Expr& value) {
  if (value.is_constant() || value.kind() == ExprKind::Symbol) return value;
  const Expr symbol = Expr::index(unused(p.program, str(name, "_", p.pieces)), extent);
  body.push_back(let(symbol.name(), extent, value));
  return symbol;
}

Body write_piece(Points& p, const PointPiece& piece, const Expr& from, const Expr& to) {
  if (piece.axis >= 0) {
    const Expr axis = p.kernel.axes[static_cast<size_t>(piece.axis)].symbol();
    return {if_less(axis, piece.at, write_piece(p, *piece.below, from, to)),
            otherwise(write_piece(p, *piece.from, from, to))};
  }
  const Expr& extent = p.last().extent;
  Body body;
  for (const Segment& loop : piece.loops) {
    p.pieces++;
    const auto [low, high] = loop.ranges.back();
    const Expr first = named(p, body, "low", extent + 1, max(from, low)),
               stop = named(p, body, "high", extent + 1, min(to, high + 1));
    Values v = values_of(p, loop.kernel, false);
    append(body, loop_over(p, v, first, stop));
  }
  return body;
}

// --- squares ---------------------------------------------------------------------------------------

// Where the square of a unit lies along an axis, and the place in it.
struct Side {
  Expr first, stop, place;
};

Side side_of(Points& p, Body& body, const char* what, const Axis& axis, const Expr& number) {
  const Side side = {Expr::index(unused(p.program, str("first_", what)), axis.extent),
                     Expr::index(unused(p.program, str("stop_", what)), axis.extent + 1),
                     Expr::index(unused(p.program, what), kSquare)};
  body.push_back(let(side.first.name(), axis.extent, number * kSquare));
  body.push_back(
      let(side.stop.name(), axis.extent + 1, min(axis.extent, side.first + kSquare)));
  return side;
}

Statement place_in(const Side& side, const Axis& axis) {
  return let(side.place.name(), kSquare, axis.symbol() - side.first);
}

// array[row*kSquare + column] = load
Statement transpose(const Points& p, Values& v, int load, const Axis& row, const Side& rows,
                    const Side& columns) {
  const auto [array, place] = v.elements.at(load);
  Body copy = {place_in(columns, p.last()), define(v.ids[load]),
               set(array, place, v.ids[load])};
  Statement loop = for_range(row.name, row.extent, rows.first, rows.stop,
                             {place_in(rows, row), vector_loop(p.last(), columns.first,
                                                               columns.stop, std::move(copy))});
  loop.transposed = true;
  return loop;
}

Body over_square(Points& p, Values& v, const std::vector<int>& loads, const Axis& row,
                 const Side& rows, const Side& columns) {
  Body body;
  for (int load : loads) {
    const DType dtype = p.kernel.scalars[load].dtype;
    Array array{str("transposed", p.tile.arrays.size()), dtype, kSquare * kSquare, Space::L2,
                is_half(dtype)};
    v.elements[load] = {add_array(p.tile, std::move(array)),
                        rows.place * kSquare + columns.place};
    body.push_back(transpose(p, v, load, row, rows, columns));
  }
  Body each = {place_in(rows, row)};
  append(each, loop_over(p, v, columns.first, columns.stop, {place_in(columns, p.last())}));
  body.push_back(for_range(row.name, row.extent, rows.first, rows.stop, std::move(each)));
  return body;
}

// Squares that share their lines come one after another.
Body over_squares(Points& p, Values& v, const std::vector<int>& loads) {
  const int along = transposed_axis(p.kernel, p.kernel.scalars[loads[0]]),
            across = p.kernel.rows - 1;
  const Axis& row = p.kernel.axes[static_cast<size_t>(along)];
  std::vector<int> order = {along};
  for (int axis = p.kernel.rows; axis-- > 0;)
    if (axis != along) order.push_back(axis);
  Expr rest = Expr::index(unused(p.program, "unit"), p.tile.units);
  const std::string unit = rest.name();
  uint64_t outer = 0;
  Side rows, columns;
  Body body;
  for (int axis : order) {
    const Axis& own = p.kernel.axes[static_cast<size_t>(axis)];
    const bool is_side = axis == along || axis == across;
    const Expr places = is_side ? ceil_div(own.extent, kSquare) : own.extent,
               here = axis == order.back() ? rest : mod(rest, places);
    rest = floor_div(rest, places);
    if (axis == along) rows = side_of(p, body, "row", own, here);
    if (axis == across) columns = side_of(p, body, "column", own, here);
    if (is_side) continue;
    body.push_back(let(own.name, own.extent, here));
    outer |= uint64_t{1} << axis;
  }
  append(body, define_over(v, outer));
  append(body, over_square(p, v, loads, row, rows, columns));
  return {for_range(unit, p.tile.units, begin_of(p.tile), end_of(p.tile), std::move(body))};
}

// As many as the last axis and that along which the loads lie have, of each of the other axes' places.
Expr count_squares(const Kernel& kernel, int along) {
  Expr count = 1;
  for (int axis = 0; axis < kernel.rows; axis++) {
    const Expr& extent = kernel.axes[static_cast<size_t>(axis)].extent;
    count =
        count * (axis == along || axis + 1 == kernel.rows ? ceil_div(extent, kSquare) : extent);
  }
  return count;
}

Tile lower_squares(const Program& program, const Kernel& kernel,
                   const std::vector<int>& loads) {
  Points p{program, kernel};
  p.tile.kernel = kernel;
  p.tile.units = count_squares(kernel, transposed_axis(kernel, kernel.scalars[loads[0]]));
  p.tile.grain = std::max<int64_t>(schedule_of(kernel).grain / (kSquare * kSquare), 1);
  Values all = values_of(p, p.kernel, true);
  p.tile.body = define_over(all, 0);
  append(p.tile.body, over_squares(p, all, loads));
  return numbered(std::move(p.tile), kernel.scalars.size());
}

// Whether a thread does each row as a whole. Not where loads ask whether they may: of a loop of three turns g++ 12
// leaves some of them out (tests/bench/NOTES.md, "Mistakes of the compiler's").
bool has_short_rows(const Kernel& kernel) {
  const auto asks = [](const Scalar& scalar) { return scalar.mask >= 0; };
  if (kernel.rows < 2 || std::any_of(kernel.scalars.begin(), kernel.scalars.end(), asks))
    return false;
  const Expr& last = kernel.axes[static_cast<size_t>(kernel.rows) - 1].extent;
  return last.is_constant() && last.constant() <= kShortRow;
}

}  // namespace

bool has_points(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cpp && schedule_of(kernel).strategy == Strategy::Pointwise &&
         !row_count(kernel).is_constant(0);
}

Tile lower_points(const Program& program, const Kernel& kernel) {
  if (has_squares(kernel)) return lower_squares(program, kernel, transposed_loads(kernel));
  Points p{program, with_short_last_row_unrolled(kernel)};
  p.tile.kernel = kernel;
  p.tile.units = row_count(p.kernel);
  const Expr neighbours =
      p.kernel.rows == kernel.rows ? 1 : kernel.axes[static_cast<size_t>(p.kernel.rows)].extent;
  const auto grain_of = [&](const Expr& points) {
    return std::max<int64_t>(
        std::max<int64_t>(schedule_of(kernel).grain, 1) / points.constant(), 1);
  };
  p.tile.grain = grain_of(neighbours);
  if (const auto pieces = pieces_of(p.kernel)) {
    p.tile.body = over_rows(
        p.program, p.kernel, p.tile, p.last().extent,
        [&](const Expr& from, const Expr& to) { return write_piece(p, *pieces, from, to); });
  } else if (has_short_rows(p.kernel)) {
    const Expr& points = p.last().extent;
    p.tile.grain = grain_of(neighbours * points);
    p.tile.units = outer_rows_of(p.kernel);
    Values all = values_of(p, p.kernel, true);
    p.tile.body = define_over(all, 0);
    append(p.tile.body, over_whole_rows(p.program, p.kernel, p.tile,
                                        [&] { return loop_over(p, all, 0, points); }));
  } else {
    Values all = values_of(p, p.kernel, true);
    p.tile.body = define_over(all, 0);
    append(p.tile.body, over_rows(p.program, p.kernel, p.tile, p.last().extent,
                                  [&](const Expr& from, const Expr& to) {
                                    return loop_over(p, all, from, to);
                                  }));
  }
  return numbered(std::move(p.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
