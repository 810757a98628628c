// How does a chunk of a row come into L1? In one loop that the compiler makes vectors of, if elements
// are neighbours in memory:
//
//   sum(j0: 4096)                  for l: 1024 vector { j0: 4096 = c*1024 + l ; .. ; t[l] = $0 }
//   sum(j0: 64, j1: 100)           for run { j0: 64 = run ; for j1: 100 = first .. stop vector { .. } }
//   sum(j0: 4096) x[j0/64, j0%64]  for run { for place: 64 = first .. stop vector { .. } }
//
// the latter without divisions. Cheap values skip the first trip: eight strided loads make a chunk's
// first 128 sums. While a row is gone over in the caches, the next one is asked for.
#include "tiny_compile/tile/row_chunks.h"

#include <algorithm>

#include "tiny_compile/graph/chunk_tree.h"
#include "tiny_compile/loops/eighths.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kEighth = kChunk / 8;  // elements

// --- runs ------------------------------------------------------------------------------------------

const Axis& last_axis(const RowReduction& x) { return x.rows.kernel.axes[x.step.inner.back()]; }

// ceil_div(start + min(a, b), n)  =>  min(ceil_div(start + a, n), ceil_div(start + b, n)): of parts it may be
// seen how many there are in all rows.
Expr runs_until(const Expr& start, const Expr& count, const Expr& length) {
  const bool is_min = !count.is_constant() && count.kind() == ExprKind::Min;
  if (!is_min) return ceil_div(start + count, length);
  const std::vector<Expr>& parts = count.operands();
  Expr least = runs_until(start, parts[0], length);
  for (size_t k = 1; k < parts.size(); k++)
    least = min(least, runs_until(start, parts[k], length));
  return least;
}

// for run: most + 1 = start/length .. { each }; to the end of the rest of a row as many as there are.
Body over_runs(RowReduction& x, const Expr& run, const Expr& most, const Expr& start,
               const Expr& end, const Expr& length, bool is_rest, Body each) {
  const Expr all = is_rest ? x.rows.index("runs", most + 2) : ceil_div(end, length);
  Body loop;
  if (is_rest) loop.push_back(let(all.name(), most + 2, runs_until(start, *x.end, length)));
  loop.push_back(
      for_range(run.name(), most + 1, floor_div(start, length), all, std::move(each)));
  return loop;
}

// Run after run, each from `first` to `stop` - 1 of its elements.
Body fill_runs(RowReduction& x, const Runs& runs, int array, const Expr& base,
               const Expr& count) {
  RowTile& r = x.rows;
  const Axis& last = last_axis(x);
  const bool is_divided = x.step.inner.size() == 1;
  const Expr &length = runs.length, start = base + runs.shift, end = start + count,
             most = is_divided
                        ? Expr(floor_div(last.symbol() + runs.shift, length).bounds().high)
                        : floor_div(x.count, length),
             run = r.index("run", most + 1), first = r.index("first", length),
             stop = r.index("stop", length + 1);
  const Axis along = is_divided ? Axis{r.index("place", length).name(), length} : last;
  const bool is_whole = mod(start, length).is_constant(0) && mod(count, length).is_constant(0);
  std::vector<int> outer = x.step.inner;
  outer.pop_back();
  Body body = outer.empty() ? Body() : unpack(r.kernel, outer, run, {});
  uint64_t axes = row_scope(r);
  for (int axis : outer) axes |= uint64_t{1} << axis;
  const std::vector<bool> defined = r.defined;
  append(body, define_within(r, x.wanted, axes, r.defined));
  RowPlace place{run * length + along.symbol() - runs.shift};
  if (is_divided) place.axes = {{last.name, place.flat}};
  Body each;
  const int value = element(x, each, place);
  if (array >= 0)
    each.push_back(set(array, place.flat - base, as_added(r, each, x.type, value)));
  r.defined = defined;
  if (!is_whole) {
    body.push_back(let(first.name(), length, max(start - run * length, 0)));
    body.push_back(let(stop.name(), length + 1, min(end - run * length, length)));
  }
  body.push_back(
      vector_loop(along, is_whole ? 0 : first, is_whole ? length : stop, std::move(each)));
  const bool is_rest = x.end && base.is_constant(0) && count == x.count;
  return over_runs(x, run, most, start, end, length, is_rest, std::move(body));
}

// --- lanes -----------------------------------------------------------------------------------------

Axis lanes_of(const RowTile& r, int64_t count) { return {r.index("l", count).name(), count}; }

// for l < count { each }; with the next row's lines asked for on the way, an eighth of a chunk at a time.
Body over_lanes(RowReduction& x, const Axis& lanes, const Expr& count, const Expr& base,
                bool is_full, Body each) {
  RowTile& r = x.rows;
  if (x.following.empty() || !is_full) return {vector_loop(lanes, 0, count, std::move(each))};
  const int64_t width = count.constant() / 8;
  const Expr part = r.index("part", 8);
  Body body;
  for (const auto& [buffer, index] : x.following)
    body.push_back(ahead_of(
        buffer, substitute(index, {{x.base().name(), base + part * kEighth}}), kEighth));
  body.push_back(vector_loop(lanes, part * width, part * width + width, std::move(each)));
  return {for_range(part.name(), 8, 0, 8, std::move(body))};
}

}  // namespace

Expr RowReduction::base() const { return Expr::index("base", count.bounds().high); }

int element(RowReduction& x, Body& body, const RowPlace& place) {
  RowElement e = element_at(x.rows, x.wanted, {{}, x.rows.ids, x.rows.defined}, place);
  append(body, std::move(e.body));
  return e.ids[x.step.value];
}

int as_added(RowTile& r, Body& body, DType type, int value) {
  const bool is_it = r.tile.kernel.scalars[value].dtype == type;
  return is_it ? value : computed(r.tile, body, Op::cast, type, {value});
}

int combined(RowTile& r, Body& body, Op op, DType type, std::vector<int> values) {
  const auto both = [&](int a, int b) {
    if (!is_float(type) || (op != Op::max && op != Op::min))
      return computed(r.tile, body, pairwise(op), type, {a, b});
    // Of two zeros either: the tree's result is +0 in the end.
    const int beats = computed(r.tile, body, op == Op::max ? Op::gt : Op::lt, DType::boolean,
                               {a, b}),
              beyond = computed(r.tile, body, Op::where, type, {beats, a, b}),
              is_nan = computed(r.tile, body, Op::ne, DType::boolean, {a, a});
    return computed(r.tile, body, Op::where, type, {is_nan, a, beyond});
  };
  return in_order(std::move(values), both);
}

Body fill(RowReduction& x, int array, const Expr& base, const Expr& count) {
  if (const std::optional<Runs> runs = runs_of(x.rows.kernel, x.step, x.wanted))
    return fill_runs(x, *runs, array, base, count);
  const bool is_axis = x.step.inner.size() == 1 && base.is_constant(0);
  const Axis lanes = is_axis ? last_axis(x) : lanes_of(x.rows, count.bounds().high);
  const Expr l = lanes.symbol();
  Body each = is_axis ? Body() : unpack(x.rows.kernel, x.step.inner, base + l, {});
  const int value = element(x, each, {base + l});
  if (array >= 0) each.push_back(set(array, l, as_added(x.rows, each, x.type, value)));
  return over_lanes(x, lanes, count, base, count.is_constant(kChunk), std::move(each));
}

Body fill_eighths(RowReduction& x, int array, const Expr& base) {
  const Axis lanes = lanes_of(x.rows, kEighth);
  const Expr l = lanes.symbol();
  Body each;
  std::vector<int> values;
  for (int part = 0; part < 8; part++) {
    const Expr flat = base + l + kEighth * part;
    const int value = element(x, each, {flat, unflatten(x.rows.kernel, x.step.inner, flat)});
    values.push_back(as_added(x.rows, each, x.type, value));
  }
  each.push_back(set(array, l, combined(x.rows, each, x.step.op, x.type, std::move(values))));
  return over_lanes(x, lanes, kEighth, base, true, std::move(each));
}

Body halve_thrice(RowTile& r, Op op, DType type, int from, const Expr& base, int array) {
  const Axis lanes = lanes_of(r, kEighth);
  const Expr l = lanes.symbol();
  Body each;
  std::vector<int> values;
  for (int part = 0; part < 8; part++)
    values.push_back(
        as_added(r, each, type, read_back(r, each, from, base + l + kEighth * part)));
  each.push_back(set(array, l, combined(r, each, op, type, std::move(values))));
  return {vector_loop(lanes, 0, kEighth, std::move(each))};
}

}  // namespace tiny_compile
