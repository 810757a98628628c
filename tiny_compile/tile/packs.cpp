// What does a GPU's thread do for points? It reads packs of neighbours, computes each, and stores packs:
//
//   rows(i0: 4096, i1: 1024) { store y[..] = add(load x[..], load b[i1]) }
// =>
//   pack: 1048576 = block*256 + thread;  e: 1024 = pack*4%1024;  i0: 4096 = pack/256
//   pack0[0] = load x[i0*1024 + e] x4;  pack1[0] = load b[e] x4
//   for v < 4 unrolled { i1: 1024 = e + v; $0 = pack0[v]; $1 = pack1[v]; $2 = add($0, $1); out2[v] = $2 }
//   store y[i0*1024 + e] x4 = out2[0]
//
// What of it is a pack, and how many a thread has, says loops/point_packs.h. A pack that goes on into
// the next row names each point's own row and column; loads that are no pack are each element's own.
#include "tiny_compile/tile/packs.h"

#include <algorithm>
#include <functional>

#include "tiny_compile/loops/branches.h"
#include "tiny_compile/loops/counted.h"
#include "tiny_compile/tile/point_loads.h"
#include "tiny_compile/tile/sized.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

// --- a pack ----------------------------------------------------------------------------------------

using Results = std::map<int, int>;  // step -> the array that is stored

// Stores that are no pack, and what packs are made of.
Body store_points(Points& p, PointScope scope, const Results& results) {
  Body body = define_over(p, scope, needed(p, scope, p.roots), all_rows(p));
  for (size_t s = 0; s < p.kernel.steps.size(); s++) {
    const Step& step = p.kernel.steps[s];
    const auto result = results.find(static_cast<int>(s));
    body.push_back(result == results.end()
                       ? store(step.buffer, step.index, p.ids[step.value])
                       : set(result->second, element(p), p.ids[step.value]));
  }
  return body;
}

// A pack within a row, whose elements then read at one place and some next to it.
Body within_row(Points& p, PointScope scope, const At& at, const Results& results) {
  Body body = unpack(p.kernel, p.outer, at.row, {});
  append(body, define_over(p, scope, needed(p, scope, p.roots), all_rows(p) & ~last_row(p)));
  Body each = {let(last(p).name, last(p).extent, at.column + element(p))};
  append(each, store_points(p, scope, results));
  body.push_back(for_each("v", p.packs.vector, true, std::move(each)));
  return body;
}

// What is divided by that all points of a pack share, in f32.
std::vector<int> divisors_of(const Points& p, const PointScope& scope) {
  std::vector<int> divisors;
  for (int id : needed(p, scope, p.roots)) {
    const Scalar& s = p.kernel.scalars[id];
    if (s.kind == ScalarKind::Apply && s.op == Op::div && compute_type(s.dtype) == DType::f32 &&
        scope.defined[s.operands[1]] &&
        std::count(divisors.begin(), divisors.end(), s.operands[1]) == 0)
      divisors.push_back(s.operands[1]);
  }
  return divisors;
}

//   if column < 1020 { .. } else { .. }
Body points(Points& p, PointScope& scope, const At& at, const Results& results) {
  if (!p.packs.parted) {
    Body body;
    // What a shortcut does may be done twice: it stores nothing itself.
    const bool stores_packs = p.packs.vector > 1 && results.size() == p.kernel.steps.size();
    const std::vector<int> divisors = stores_packs ? divisors_of(p, scope) : std::vector<int>();
    for (int id : divisors) body.push_back(divisor(id));
    append(body, load_ahead(p, scope, at));
    Body each = over_points(p, at, store_points(p, scope, results));
    if (!divisors.empty()) each = {shortcut(std::move(each), -1)};
    append(body, std::move(each));
    return body;
  }
  const Expr inside = last(p).extent - (p.packs.vector - 1);
  const Expr column =
      at.left.is_constant(0) ? at.column : max(at.column, last(p).extent - at.left);
  return {if_less(column, inside, within_row(p, scope, at, results)),
          otherwise(over_points(p, at, store_points(p, scope, results)))};
}

Body pack_at(Points& p, const At& at, PointScope scope) {
  Body body;
  if (!p.packs.through) {
    if (!p.packs.line) append(body, unpack(p.kernel, p.outer, at.row, {}));
    append(body, define_over(p, scope, needed(p, scope, p.roots), all_rows(p) & ~last_row(p)));
  }
  append(body, slide_ahead(p, scope, at));
  append(body, load_packs(p, scope, needed(p, scope, p.roots), at));
  Results results;
  for (size_t s = 0; s < p.kernel.steps.size(); s++) {
    const Step& step = p.kernel.steps[s];
    if (is_wide(p, step.index, step.buffer))
      results[static_cast<int>(s)] = add_values(p, "out", step.dtype, p.packs.vector);
  }
  append(body, points(p, scope, at, results));
  for (const auto& [s, array] : results) {
    const Step& step = p.kernel.steps[static_cast<size_t>(s)];
    Statement all =
        store_vector(step.buffer, at_start(p, step.index, at), array, 0, p.packs.vector);
    all.left = at.left;
    body.push_back(std::move(all));
  }
  return body;
}

// --- a thread's packs ---------------------------------------------------------------------------------

// Names what a pack's place is made of: first: 4000 = pack*4.
At named(const Points& p, Body& body, const Expr& pack, const Expr& turn, const Expr& column,
         bool is_ragged) {
  At at;
  const Expr start = pack * p.packs.vector;
  at.first = p.packs.slabs == 1 ? start : start + turn * p.packs.slab;
  if ((p.packs.line || p.packs.through) && at.first.kind() != ExprKind::Symbol) {
    const Expr first = Expr::index(unused(p, "first"), p.packs.count);
    body.push_back(let(first.name(), p.packs.count, at.first));
    at.first = first;
  }
  at.column = p.packs.line ? at.first : column;
  if (!p.packs.line)
    at.row = floor_div(start, p.packs.extent) + turn * floor_div(p.packs.slab, p.packs.extent);
  if (!is_ragged) return at;
  at.left = Expr::index(unused(p, "left"), p.packs.count + 1);
  body.push_back(
      let(at.left.name(), p.packs.count + 1, p.packs.count - start - turn * p.packs.slab));
  return at;
}

Expr name_column(const Points& p, Body& body, const Expr& pack, const char* through = "column",
                 const char* within = "e") {
  if (p.packs.line) return 0;
  const Expr column =
      Expr::index(unused(p, p.packs.through ? through : within), p.packs.extent);
  body.push_back(
      let(column.name(), p.packs.extent, mod(pack * p.packs.vector, p.packs.extent)));
  return column;
}

Body one_pack(Points& p, const Expr& pack) {
  Body body;
  const Expr column = name_column(p, body, pack);
  const At at = named(p, body, pack, 0, column, p.packs.ragged);
  append(body, pack_at(p, at, nothing(p)));
  return body;
}

// The same for each slab; what the last one may lack is asked there alone: asked in the others, it
// would part their loads.
Body over_slabs(const Points& p, const Expr& pack,
                const std::function<Body(const Expr& pack, const Expr& turn, bool)>& each) {
  const Expr lacks = p.packs.slab * p.packs.slabs - p.packs.count;
  if (lacks.is_constant(0)) {
    const Expr turn = Expr::index(unused(p, "turn"), p.packs.slabs);
    return {for_each(turn.name(), p.packs.slabs, true, each(pack, turn, false))};
  }
  const Expr turn = Expr::index(unused(p, "turn"), p.packs.slabs - 1),
             count =
                 ceil_div(p.packs.count - p.packs.slab * (p.packs.slabs - 1), p.packs.vector),
             rest = Expr::index(unused(p, "rest"), count);
  Body last = {let(rest.name(), count, pack)};
  append(last, each(rest, p.packs.slabs - 1, p.packs.ragged));
  return {for_each(turn.name(), p.packs.slabs - 1, true, each(pack, turn, false)),
          if_less(pack, count, std::move(last))};
}

// Reads what chooses the rows of all packs: each row's load would wait for it alone otherwise, and
// the next ones behind it.
//
//   for turn < 4 unrolled { i0 = ..; $7 = load index[i0]; chosen3[turn] = $7 }
Body choose_ahead(Points& p, PointScope& scope, const Expr& pack) {
  if (p.packs.chosen.empty()) return {};
  std::map<int, ElementPlace> places;
  for (int id : p.packs.chosen)
    places[id] = {add_values(p, "chosen", p.kernel.scalars[id].dtype, p.packs.slabs), 0};
  std::vector<int> below = needed(p, scope, p.packs.chosen);
  std::erase_if(below,
                [&](int id) { return p.kernel.scalars[id].kind == ScalarKind::Constant; });
  Body body = over_slabs(p, pack, [&](const Expr& own, const Expr& turn, bool) {
    const Expr start = own * p.packs.vector;
    const std::vector<int> ids = copied(p, below, {});
    Body each = unpack(
        p.kernel, p.outer,
        floor_div(start, p.packs.extent) + turn * floor_div(p.packs.slab, p.packs.extent), {});
    for (int id : below) each.push_back(define(ids[id]));
    for (const auto& [id, place] : places) each.push_back(set(place.array, turn, ids[id]));
    return each;
  });
  scope.places = places;
  return body;
}

Body slabs(Points& p, const Expr& pack) {
  Body body;
  const Expr column = name_column(p, body, pack);
  PointScope scope = nothing(p);
  append(body, choose_ahead(p, scope, pack));
  append(body, over_slabs(p, pack, [&](const Expr& own, const Expr& turn, bool is_ragged) {
           PointScope here = scope;
           for (auto& [id, place] : here.places) place.index = turn;
           Body each;  // of the last slab the column is in its own pack's number, as its row is
           const Expr its =
               own == pack ? column : name_column(p, each, own, "column_there", "there");
           const At at = named(p, each, own, turn, its, is_ragged);
           append(each, pack_at(p, at, std::move(here)));
           return each;
         }));
  return body;
}

// --- all of them -----------------------------------------------------------------------------------

Tile written(Points p) {
  p.tile.warps = p.packs.block / 32;
  p.tile.resident = p.packs.resident;
  const Expr count = ceil_div(p.packs.slab, p.packs.vector);
  p.tile.grid = ceil_div(count, p.packs.block);
  const Expr number = block_of(p.tile) * p.packs.block + thread_of(p.tile);
  const bool is_first = p.packs.vector == 1 && p.packs.slabs == 1;
  const Expr pack = Expr::index(unused(p, is_first ? "first" : "pack"), count);
  Body body = {let(pack.name(), count, number)};
  append(body, p.packs.slabs == 1 ? one_pack(p, pack) : slabs(p, pack));
  const bool is_whole = !p.any_count && mod(count, p.packs.block).is_constant(0);
  if (!is_whole) body = {if_less(number, count, std::move(body))};
  p.tile.body = std::move(body);
  return numbered(std::move(p.tile), p.kernel.scalars.size());
}

// A counted kernel of that many points.
Kernel with_count(Kernel kernel, const Expr& count) {
  Axis& axis = kernel.axes[0];
  axis.extent = count;
  const Substitution there = {{axis.name, axis.symbol()}};
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, there);
  for (Step& step : kernel.steps) step.index = substitute(step.index, there);
  return kernel;
}

Expr points_counted() {
  return Expr::symbol(Symbol("points", SymbolKind::Size), 1, kMostCounted);
}

Tile lower_for_any_count(const Program& program, const Kernel& kernel) {
  const Kernel any = with_count(kernel, points_counted());
  Points p = points_for(program, any, true);
  p.branches = costly_branches(with_count(kernel, kMostCounted));
  return written(std::move(p));
}

}  // namespace

Tile for_count(const Tile& any, const Expr& points) {
  return substitute(any, {{points_counted().symbol(), points}});
}

bool has_packs(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cuda && !row_count(kernel).is_constant(0) &&
         schedule_of(kernel).strategy == Strategy::Pointwise;
}

Tile lower_packs(const Program& program, const Kernel& kernel, bool any_count) {
  if (any_count) return for_count(lower_for_any_count(program, kernel), row_count(kernel));
  return written(points_for(program, kernel, false));
}

std::optional<Tile> for_any_count(const LoneKernel& lone, const Tile& tile) {
  Tile any = lower_for_any_count(lone.program, lone.kernel());
  if (for_count(any, row_count(lone.kernel())) == tile) return any;
  return std::nullopt;
}

}  // namespace tiny_compile
