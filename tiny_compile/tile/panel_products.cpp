// How does a CPU multiply matrices, whatever axes they have? A unit is a block of rows and columns of a batch. It packs
// panels of both, some hundred steps of depth at a time, and goes over them by tiles whose sums stay in registers.
// What a thread keeps packed for its next units, tags say.
//
//   for unit {
//     if tags[0] is not this one { pack the columns ; tags[0] = this one }
//     for block of depth {
//       pack the rows, unless they are multiplied from where they lie
//       for panel of rows { for panel of columns { a tile of sums; the last time its results (panel_sums) } }
//     }
//   }
//
// Each product is one fma, k ascending within a block of depth and from block to block through the sums, as the
// contract asks: no cut changes a bit.
#include "tiny_compile/tile/panel_products.h"

#include <algorithm>

#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/panel_sums.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

int add_floats(PanelProduct& p, const char* name, int64_t size, Space space) {
  return add_array(p.tile,
                   {p.number(name, 1).name(), p.shape.type, std::max<int64_t>(size, 1), space});
}

PanelProduct product_of(const Program& program, const Kernel& kernel) {
  const Schedule s = schedule_of(kernel);
  const PanelShape shape = panel_shape(kernel);
  const DotAxes& axes = shape.axes;
  PanelProduct p{program,
                 kernel,
                 s,
                 shape,
                 left_view(kernel, axes),
                 right_view(kernel, axes),
                 {axes.left, "row", s.down, shape.steps, s.panels_down},
                 {axes.right, "column", s.across, shape.steps, s.panels_across}};
  p.tile.kernel = kernel;
  p.tile.units = shape.units();
  p.tile.grain = s.grain;
  if (s.kept > 0)
    p.tags = add_array(p.tile, {p.number("tags", 1).name(), DType::i64,
                                1 + (s.kept == 2 ? shape.left_blocks : 0), Space::Kept});
  if (p.multiplies()) {
    p.columns.array = add_floats(p, "right", shape.right, Space::Memory);
    if (s.packs_rows)
      p.rows.array = add_floats(p, "left", shape.left * shape.left_blocks, Space::Memory);
  }
  const int64_t sums = shape.is_deep ? shape.sums : p.tile_size();
  p.sums = add_floats(
      p, "sums", sums,
      shape.is_deep ? Space::Memory : near_space(program.machine, sums * size_of(shape.type)));
  return p;
}

// --- panels ------------------------------------------------------------------------------------------

bool is_of_rows(const PanelProduct& p, const Packing& packing) { return &packing == &p.rows; }

bool is_kept(const PanelProduct& p, const Packing& packing) {
  return p.schedule.kept >= (is_of_rows(p, packing) ? 2 : 1);
}

// Where the panels of a block of depth lie: only what is kept has places for each.
Expr place_of(const PanelProduct& p, const Packing& packing, const Expr& d) {
  if (!is_kept(p, packing)) return 0;
  const Expr place = d * (packing.panels * packing.steps * packing.width);
  return is_of_rows(p, packing) ? p.rows_of_unit * p.shape.left + place : place;
}

Body pack_block(PanelProduct& p, Packing& packing, const Expr& d) {
  const bool of_rows = is_of_rows(p, packing);
  return pack(p.tile, {p.program, of_rows ? p.rows_view : p.columns_view}, packing,
              {place_of(p, packing, d), of_rows ? p.first_row : p.first_column,
               of_rows ? p.stop_row : p.stop_column, p.steps});
}

// body(d) for each block of depth; one at least, for the results of empty sums.
Body over_depth(PanelProduct& p, const std::function<Body(const Expr&)>& body) {
  const Expr& depth = p.shape.depth;
  if (!p.shape.is_deep && depth.is_constant()) {
    p.steps = {0, depth, depth};
    return body(0);
  }
  const int64_t steps = p.schedule.depth;
  const Expr blocks = max(ceil_div(depth, steps), 1), d = p.number("d", blocks);
  Body each;
  p.steps.first = p.named(each, "first_k", depth, d * steps);
  p.steps.count = p.named(each, "steps", steps + 1, min(depth - p.steps.first, steps));
  p.steps.stop = p.named(each, "stop_k", depth + 1, p.steps.first + p.steps.count);
  p.steps.stops = {p.steps.first + steps, depth};
  append(each, body(d));
  return {for_range(d.name(), blocks, 0, blocks, std::move(each))};
}

// All of the depth, unless the tag says that it is there.
Body pack_once(PanelProduct& p, Packing& packing, const Expr& tag, const Expr& which) {
  Body body;
  const int wanted = as_data(p.tile, body, which + 1),
            found = read_element(p.tile, body, p.tags, tag),
            differs = computed(p.tile, body, Op::ne, DType::boolean, {found, wanted});
  Body anew = over_depth(p, [&](const Expr& d) { return pack_block(p, packing, d); });
  anew.push_back(set(p.tags, tag, wanted));
  body.push_back(if_true(differs, std::move(anew)));
  return body;
}

// --- blocks ------------------------------------------------------------------------------------------

// The columns' next steps, or the next columns' first ones.
Body find_next(PanelProduct& p) {
  Body body;
  p.next.reset();
  const auto lies = strided(p.columns_view, p.shape.axes.right);
  if (!lies) return body;
  const Expr &across = p.shape.column_blocks, &depth = p.shape.depth,
             both = p.shape.batches * across,
             goes_on = p.named(body, "goes_on", 2, min(depth - p.steps.stop, 1)),
             which =
                 p.named(body, "next", both, min(p.columns_of_unit + 1 - goes_on, both - 1));
  NextPanels next{*lies, {}, {}, {}};
  next.first_lane =
      p.named(body, "next_column", p.shape.columns, mod(which, across) * p.shape.block_columns);
  next.first_step = p.named(body, "next_k", depth, goes_on * min(p.steps.stop, depth - 1));
  const Expr batch = p.named(body, "next_batch", p.shape.batches, floor_div(which, across));
  next.batch = unflatten(p.kernel, p.shape.axes.batch, batch);
  p.next = next;
  return body;
}

Body multiply_block(PanelProduct& p, const Expr& d) {
  Body body;
  for (Packing* packing : {&p.columns, &p.rows}) {
    if (packing->array >= 0 && !is_kept(p, *packing)) append(body, pack_block(p, *packing, d));
  }
  p.left = place_of(p, p.rows, d), p.right = place_of(p, p.columns, d);
  append(body, find_next(p));
  append(body, over_panels(p));
  return body;
}

// Names where a block begins and stops.
void name_range(const PanelProduct& p, Body& body, const std::string& what, const Expr& place,
                int64_t width, const Expr& count, Expr& first, Expr& stop) {
  first = p.named(body, "first_" + what, count, place * width);
  stop = p.named(body, "stop_" + what, count + 1, min(first + width, count));
}

Body block(PanelProduct& p, const Expr& unit) {
  Body body;
  const PanelShape& shape = p.shape;
  const Expr &across = shape.column_blocks, &down = shape.row_blocks;
  p.columns_of_unit = p.named(body, "columns", shape.batches * across, floor_div(unit, down));
  p.rows_of_unit = p.named(body, "rows", down, mod(unit, down));
  const Expr batch =
      p.named(body, "batch", shape.batches, floor_div(p.columns_of_unit, across));
  name_range(p, body, "column", mod(p.columns_of_unit, across), shape.block_columns,
             shape.columns, p.first_column, p.stop_column);
  name_range(p, body, "row", p.rows_of_unit, shape.block_rows, shape.rows, p.first_row,
             p.stop_row);
  append(body, unpack(p.kernel, shape.axes.batch, batch, {}));
  if (!p.multiplies()) {
    append(body, over_panels(p));
    return body;
  }
  if (p.schedule.kept >= 1) append(body, pack_once(p, p.columns, 0, p.columns_of_unit));
  if (p.schedule.kept == 2)
    append(body, pack_once(p, p.rows, 1 + p.rows_of_unit, batch * down + p.rows_of_unit));
  append(body, over_depth(p, [&](const Expr& d) { return multiply_block(p, d); }));
  return body;
}

}  // namespace

bool has_panels(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cpp && !row_count(kernel).is_constant(0) &&
         schedule_of(kernel).strategy == Strategy::Tiles;
}

Tile lower_panels(const Program& program, const Kernel& kernel) {
  PanelProduct p = product_of(program, kernel);
  const Expr unit = p.number("unit", p.tile.units);
  p.tile.body = {
      for_range(unit.name(), p.tile.units, begin_of(p.tile), end_of(p.tile), block(p, unit))};
  return numbered(std::move(p.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
