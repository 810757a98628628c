// How do the threads of a block scan rows together, in the contract's order? Each has a group of 16
// elements, scanned one after the other in registers. What stands before a group are the totals
// of the groups before it, scanned by the same rule: threads exchange totals through shared memory.
//
//   scan y[i0*28996 + j0] for (j0: 28996) = cumsum load x[i0*28996 + j0]
// =>
//   for t < 8 {                                      a tile: 256 groups, 4096 elements
//     shared[..] = ..;  barrier                      tile/scan_moves.h; the next tile is asked for
//     total = total + values[k];  values[k] = total  within the group
//     totals[thread] = total;  barrier               every thread combines the 16 of its group of groups:
//     lower = totals[..] + ..                        what stands before it there, and their total
//     above[thread/16] = lower;  barrier             and 16 of these are the tile
//     upper = above[..] + ..
//     before = (stands + upper.before) + lower.before
//     values[k] = before + values[k]
//     stands = ..                                    before the next tile (tile/running.h)
//   }
//
// Columns side by side go in tiles of 16 groups, of one level. A scan's total needs no results.
//
// An operator of many instructions (logaddexp has 63) is not applied where it need not be: one
// thread of 16 combines their totals for all of them, and groups of the last tile behind the row's end
// are skipped.
#include "tiny_compile/tile/scans.h"

#include <algorithm>

#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/tile/scan_exchange.h"
#include "tiny_compile/tile/scan_moves.h"

namespace tiny_compile {
namespace {

// Blocks, their threads, and which row and group each of these has.
ScanTile planned(const Program& program, const Kernel& kernel) {
  ScanTile s{program, kernel, scan_of(kernel), scan_shape(kernel)};
  const ScanShape& shape = s.shape;
  s.tile.kernel = kernel;
  s.tile.warps = static_cast<int>(shape.warps());
  s.tile.grid = ceil_divide(shape.rows, shape.block_rows);
  s.tile.resident = schedule_of(kernel).resident;
  const int64_t by = shape.along ? shape.groups : shape.block_rows;
  const Expr thread = thread_of(s.tile), slow = floor_div(thread, by), fast = mod(thread, by);
  s.r = s.index("r", shape.along ? ceil_divide(s.threads(), by) : by);
  s.g = s.index("g", shape.along ? by : ceil_divide(s.threads(), by));
  s.tile.body = {let(s.r.name(), s.r.bounds().high + 1, shape.along ? slow : fast),
                 let(s.g.name(), s.g.bounds().high + 1, shape.along ? fast : slow)};
  return s;
}

// What is stored of each row once its total is known, by its first thread.
Body store_of_row(const ScanTile& s, const ScanMoves& moves, int total) {
  Body stores = s.shape.along ? moves.points().name_row() : Body();
  std::vector<int> roots;
  for (const Step& step : s.kernel.steps)
    if (step.kind == StepKind::Store) roots.push_back(step.value);
  for (int id : needed_by(s, roots)) {
    const ScalarKind kind = s.kernel.scalars[id].kind;
    if (moves.defined[id] || kind == ScalarKind::Constant) continue;
    stores.push_back(kind == ScalarKind::Register ? define_from(id, total, 0) : define(id));
  }
  for (const Step& step : s.kernel.steps)
    if (step.kind == StepKind::Store)
      stores.push_back(store(step.buffer, step.index, step.value));
  return {if_less(s.g, 1, moves.points().where_row(std::move(stores)))};
}

// The tile, and what its parts know of it.
struct Scan {
  ScanTile s;
  Running running{s.tile, s.scan, s.kernel.scalars[s.scan.value].dtype, s.shape.length};
  ScanMoves moves{s, running};
  ScanExchange exchange{s, running};
  StoodArray stands{}, total{};           // before the row or its tile; of the thread's group
  std::optional<RunningGroups> groups{};  // of several tiles
};

bool is_total(const Scan& c) { return makes_register(c.s.scan); }

// What stands before the row, whose names are gone behind it.
Body start(Scan& c) {
  Body body = c.s.shape.along ? c.moves.points().name_row() : Body();
  std::vector<bool> known = c.moves.defined;
  append(body, define_within(c.s, needed_by(c.s, {c.s.scan.rhs}), ~uint64_t{0}, known));
  append(body, c.running.set(c.stands, 0, {c.s.scan.rhs}));
  return {for_each(c.s.index("once", 1).name(), 1, true, std::move(body))};  // for its names
}

// --- a group of 16 ---------------------------------------------------------------------------

bool skips_groups(const Scan& c) {
  return c.running.is_costly() && c.s.shape.tiles() > 1 &&
         c.s.shape.tiles() * c.s.shape.groups > ceil_divide(c.s.shape.length, kGroup);
}

// What only groups of the row do.
Body of_row(const Scan& c, const Expr& t, Body body) {
  if (!skips_groups(c)) return body;
  return {if_less(c.moves.points().first_of_group(t), c.s.shape.length, std::move(body))};
}

Stood element(Scan& c, Body& body, const Expr& t, const Expr& k) {
  const int value = add_element(c.s.tile, c.moves.values, k);
  body.push_back(define(value));
  return c.running.element(body, value, c.moves.points().first_of_group(t) + k,
                           c.s.shape.length, c.s.shape.is_ragged());
}

Body keep(Scan& c, const Expr& place, const Stood& so_far, const Stood& upto) {
  Body body;
  if (!is_total(c) && !c.running.has_places())
    body.push_back(set(c.moves.values, place, (c.s.scan.exclusive ? so_far : upto).value));
  append(body, c.running.set(c.total, 0, upto));
  return body;
}

// The group one element after the other. Values become what stands before them in their group, or
// before the next.
Body within(Scan& c, const Expr& t) {
  Body body, nothing = c.running.set(c.total, 0, c.running.identity());
  const bool first_alone = c.running.is_costly();
  if (first_alone) {
    const Stood first = element(c, body, t, 0);
    append(body, keep(c, 0, c.running.identity(), first));
  }
  const int64_t count = kGroup - first_alone;
  const Expr k = c.s.index("k", count), place = k + first_alone;
  Body each;
  const Stood here = element(c, each, t, place), so_far = c.running.read(each, c.total, 0),
              upto = c.running.both(each, so_far, here);
  append(each, keep(c, place, so_far, upto));
  body.push_back(for_each(k.name(), count, true, std::move(each)));
  append(nothing, of_row(c, t, std::move(body)));
  return nothing;
}

// --- results ---------------------------------------------------------------------------------

Body results_of_group(Scan& c, const Expr& t, const ScanTotals& before) {
  Body body;
  Stood all = c.running.read(body, c.stands, 0);
  for (const Stood& stood : before.before) all = c.running.both(body, all, stood);
  const Expr k = c.s.index("k", kGroup);
  Body each;
  if (c.running.has_places()) {
    const StoodArray upto = c.running.array("upto", 1);
    append(body, c.running.set(upto, 0, all));
    const Stood here = element(c, each, t, k), so_far = c.running.read(each, upto, 0),
                next = c.running.both(each, so_far, here);
    append(each, c.running.set(upto, 0, next));
    append(each, {set(c.moves.values, k, next.value), set(c.moves.places, k, next.place)});
  } else {
    const int value = add_element(c.s.tile, c.moves.values, k);
    each.push_back(define(value));
    each.push_back(set(c.moves.values, k, c.running.both(each, all, {value}).value));
  }
  body.push_back(for_each(k.name(), kGroup, true, std::move(each)));
  return body;
}

Body results(Scan& c, const Expr& t, const ScanTotals& before) {
  Body body = of_row(c, t, results_of_group(c, t, before));
  const Step* beside = values_beside(c.s.kernel, c.s.scan);
  const Body given = c.moves.give();
  append(body, given);
  if (c.s.shape.along) body.push_back(barrier());
  if (beside != nullptr) append(body, c.moves.home(t, *beside));
  append(body, c.moves.home(t, c.s.scan));
  if (c.s.shape.along && c.s.shape.tiles() > 1 && c.s.shape.transposed())
    body.push_back(barrier());
  return body;
}

// --- a tile ----------------------------------------------------------------------------------

Body one_tile(Scan& c, const Expr& t) {
  const ScanShape& shape = c.s.shape;
  Body body = c.moves.put(t);
  if (shape.along) body.push_back(barrier());
  if (shape.tiles() > 1 && c.moves.asks())
    body.push_back(if_less(t + 1, shape.tiles(), c.moves.ask(t + 1)));
  append(body, c.moves.take());
  append(body, within(c, t));
  const ScanTotals before = c.exchange.totals(body, c.running.read(body, c.total, 0), t);
  if (!is_total(c)) append(body, results(c, t, before));
  if (shape.tiles() > 1)
    append(body, c.groups->next(t, before.total, c.stands));
  else
    append(body, c.running.set(c.total, 0, before.total));
  return body;
}

}  // namespace

Tile lower_scan(const Program& program, const Kernel& kernel) {
  Scan c{planned(program, kernel)};
  const ScanShape& shape = c.s.shape;
  const auto add = [&](Body body) { append(c.s.tile.body, std::move(body)); };
  add(c.moves.begin());
  c.stands = c.running.array("stands", 1);
  c.total = c.running.array("total", 1);
  add(c.running.set(c.stands, 0, c.running.identity()));
  if (!is_total(c) && c.s.scan.rhs >= 0) add(start(c));
  if (shape.tiles() > 1) {
    c.groups.emplace(c.running, scan_levels(shape.length) - (shape.has_two_levels() ? 2 : 1));
    add(c.groups->begin(c.stands));
  }
  add(c.moves.ask(0));
  const Expr t = shape.tiles() > 1 ? c.s.index("t", shape.tiles()) : Expr(0);
  Body tile = one_tile(c, t);
  if (shape.tiles() > 1) tile = {for_each(t.name(), shape.tiles(), false, std::move(tile))};
  add(std::move(tile));
  if (is_total(c)) {
    Body body;
    const Stood all = shape.tiles() > 1 ? c.groups->total(body, c.running.identity())
                                        : c.running.read(body, c.total, 0);
    append(body, c.running.set(c.total, 0, all));
    append(body, store_of_row(c.s, c.moves, c.total.values));
    add(std::move(body));
  }
  return numbered(std::move(c.s.tile), c.s.kernel.scalars.size());
}

bool has_scan(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cuda && !row_count(kernel).is_constant(0) &&
         scans_in_groups(program, kernel);
}

}  // namespace tiny_compile
