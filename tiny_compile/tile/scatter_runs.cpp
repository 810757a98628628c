// How do many threads scatter rows that share their places, each sum in its order? Not the updates are dealt out but
// the result: a block owns a run of it, finds the updates that go there, and adds them in order.
//
//   y[index[j]] += d[j], 6 targets, 2 blocks    index: 4 1 5 1 0 4
//     block 0 owns 0..2   listed: 1 @1, 1 @3, 0 @4   sorted: 0 @4   1 @1, @3
//     block 1 owns 3..5   listed: 4 @0, 5 @2, 4 @5   sorted: 4 @0, @5   5 @2
//
// Threads go over the run, a pack of neighbouring columns each, which read memory side by side:
//
//   sum = base;  for its target's updates: sum += d[j];  y = sum
//
// in chunks of 1024 updates where there are more and their order shows: sum += part, part += d[j]. Several updates are
// asked for before the first is added.
//
// Where columns begin anywhere, 127 of f16 for a target, a thread has some that are apart instead, 0, 32, 64 and 96,
// and the next thread 1, 33, 65 and 97: what is done for an update, whatever its column, is done once for four of
// them. A thread whose last would be beyond the end adds up the last column for it, and stores it not.
#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/point_loads.h"
#include "tiny_compile/tile/run_tile.h"
#include "tiny_compile/tile/scatters.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

bool in_chunks(const RunTile& r) {
  return r.shape.updates > kChunk && scatters_in_chunks(r.scatter.op, r.dtype);
}

// The arrays that a thread adds its packs up in.
struct Sums {
  RunTile& r;
  // Updates that are asked for at once: a thread has seven predicates, and a pack four registers.
  const int64_t size = r.shape.of_pack(), ahead = size > 4 ? 3 : 5;
  const int sum = r.own("sum", r.dtype, size);
  const int next = r.own("next", r.dtype, ahead* size);
  const int part = in_chunks(r) ? r.own("part", r.dtype, size) : -1;
  const int chunk = in_chunks(r) ? r.own("chunk", DType::i32) : -1;

  Expr element() const { return size == 1 ? Expr(0) : Expr::index("v", size); }
};

// A pack: where its neighbours begin, or the first of those that are apart.
struct Pack {
  At at;
  Expr first;
};

// --- one pack --------------------------------------------------------------------------------

Body over_pack(const Sums& s, Body each) {
  if (s.size == 1) return each;
  return {for_each("v", s.size, true, std::move(each))};
}

// The column that v is, of those that are apart.
Expr column_of(const Sums& s, const Pack& pack) {
  return pack.first + s.element() * s.r.shape.packs;
}

std::vector<int> row_axes_of(const Sums& s) {
  std::vector<int> axes = s.r.p.outer;
  axes.push_back(s.r.p.kernel.rows - 1);
  return axes;
}

// A point alone has its place named already.
Body over_points(const Sums& s, const Pack& pack, Body each) {
  if (s.size == 1) return each;
  if (s.r.shape.apart == 1) return tiny_compile::over_points(s.r.p, pack.at, std::move(each));
  const int64_t columns = s.r.shape.columns;
  Body body = unpack(s.r.p.kernel, row_axes_of(s), min(column_of(s, pack), columns - 1), {});
  append(body, std::move(each));
  return {for_each("v", s.size, true, std::move(body))};
}

// For those that there are.
Body over_own_points(const Sums& s, const Pack& pack, Body each) {
  const int64_t columns = s.r.shape.columns;
  if (s.r.shape.apart > 1 && columns % s.r.shape.apart != 0)
    each = {if_less(column_of(s, pack), columns, std::move(each))};
  return over_points(s, pack, std::move(each));
}

// array[place of v] = the step's value, for each element of the pack.
Body evaluate(const Sums& s, PointScope scope, const Step& step, int array, const Expr& place,
              const Pack& pack) {
  const uint64_t known = s.r.shape.apart > 1 ? ~all_rows(s.r.p) : ~last_row(s.r.p);
  Body body = define_over(s.r.p, scope, needed(s.r.p, scope, {step.value}), known);
  append(body, load_packs(s.r.p, scope, needed(s.r.p, scope, {step.value}), pack.at));
  Body each = define_over(s.r.p, scope, needed(s.r.p, scope, {step.value}), ~uint64_t{0});
  each.push_back(set(array, place + s.element(), s.r.p.ids[step.value]));
  append(body, over_points(s, pack, std::move(each)));
  return body;
}

int nothing_yet(const Sums& s) {
  return add_constant(s.r.p.tile, identity(s.r.scatter.op, s.r.dtype));
}

// --- what a pack begins with -----------------------------------------------------------------

Body begin_pack(const Sums& s, const Pack& pack) {
  Body body = evaluate(s, nothing(s.r.p), s.r.base, in_chunks(s.r) ? s.part : s.sum, 0, pack);
  if (in_chunks(s.r)) append(body, over_pack(s, {set(s.sum, s.element(), nothing_yet(s))}));
  return body;
}

// From what the lists before have given.
Body go_on(const Sums& s, const Pack& pack) {
  Body each;
  const int sum = load_from(s.r.p.tile, each, s.r.base.buffer, s.r.dtype, s.r.base.index);
  each.push_back(set(s.sum, s.element(), sum));
  if (in_chunks(s.r)) each.push_back(set(s.part, s.element(), nothing_yet(s)));
  return over_points(s, pack, std::move(each));
}

// --- the updates of its list -----------------------------------------------------------------

int combined(const Sums& s, Body& body, int a, int b) {
  return updated(s.r.p.tile, body, s.r.scatter.op, s.r.dtype, a, b);
}

// sum[v] = sum[v] and part[v], whose next chunk begins with nothing.
Body end_chunk(const Sums& s) {
  const Expr v = s.element();
  Body body;
  const int sum = s.r.read(body, s.sum, v), part = s.r.read(body, s.part, v);
  body.push_back(set(s.sum, v, combined(s, body, sum, part)));
  body.push_back(set(s.part, v, nothing_yet(s)));
  return over_pack(s, std::move(body));
}

// Number n of the list, as an integer.
Expr listed(const Sums& s, Body& body, const Expr& n) {
  if (s.r.shape.is_ordered) return s.r.ordered(body, n);
  return s.r.chosen(body, "u", s.r.shape.updates, s.r.read(body, s.r.sorted, n));
}

Body add_updates(const Sums& s, const Expr& begin, const Expr& end, const Pack& pack) {
  RunTile& r = s.r;
  const int64_t groups = ceil_divide(r.shape.updates, s.ahead);
  const Expr g = r.index("g", groups), k = r.index("k", s.ahead), n = begin + g * s.ahead + k;
  const int64_t most =
      r.sorted < 0 ? r.shape.updates : r.p.tile.arrays[r.sorted].size.constant();
  Body ask_for, add;
  const Expr at = r.name(ask_for, "n", most, min(n, most - 1)), update = listed(s, ask_for, at);
  append(ask_for, unpack(r.p.kernel, r.scatter.inner, update, {}));
  append(ask_for, evaluate(s, nothing(r.p), r.scatter, s.next, k * s.size, pack));
  if (in_chunks(r)) {
    Body other = end_chunk(s);
    const Expr which = listed(s, add, r.name(add, "n", most, min(n, most - 1)));
    const int here = r.data(add, floor_div(which, kChunk));
    other.push_back(set(s.chunk, 0, here));
    add.push_back(if_true(r.ask(add, Op::ne, here, r.read(add, s.chunk)), std::move(other)));
  }
  const int to = in_chunks(r) ? s.part : s.sum;
  const Expr v = s.element();
  Body one;
  const int so_far = r.read(one, to, v), next = r.read(one, s.next, k * s.size + v);
  one.push_back(set(to, v, combined(s, one, so_far, next)));
  append(add, over_pack(s, std::move(one)));
  const auto each = [&](Body body) {
    return for_each(k.name(), s.ahead, true, {if_less(n, end, std::move(body))});
  };
  Body body;
  if (in_chunks(r)) body.push_back(set(s.chunk, 0, r.number(0)));
  body.push_back(for_range(g.name(), groups, 0,
                           min(ceil_div(max(end - begin, 0), s.ahead), groups),
                           {each(std::move(ask_for)), each(std::move(add))}));
  if (in_chunks(r)) append(body, end_chunk(s));
  return body;
}

// --- its result ------------------------------------------------------------------------------

Body store_pack(const Sums& s, const Pack& pack) {
  if (is_wide(s.r.p, s.r.base.index, s.r.base.buffer))
    return {store_vector(s.r.base.buffer, at_start(s.r.p, s.r.base.index, pack.at), s.sum, 0,
                         s.r.shape.vector)};
  Body each;
  const int sum = s.r.read(each, s.sum, s.element());
  each.push_back(store(s.r.base.buffer, s.r.base.index, sum));
  return over_own_points(s, pack, std::move(each));
}

Body store_again(const Sums& s, const Pack& pack) {
  Body each;
  const int sum = s.r.read(each, s.sum, s.element());
  each.push_back(update_at(Op::scatter, s.r.base.buffer, s.r.base.index, sum));
  return over_own_points(s, pack, std::move(each));
}

// --- the packs of a run ----------------------------------------------------------------------

// By its number in the target.
Pack named_pack(const Sums& s, Body& body, const Expr& number) {
  RunTile& r = s.r;
  if (r.shape.apart > 1) return {{}, number};
  const Axis& axis = last(r.p);
  Pack pack;
  pack.at.column =
      r.name(body, "start", axis.extent, mod(number * r.shape.vector, axis.extent));
  append(body,
         unpack(r.p.kernel, r.p.outer, floor_div(number * r.shape.vector, axis.extent), {}));
  if (s.size == 1) body.push_back(let(axis.name, axis.extent, pack.at.column));
  return pack;
}

Body own_pack(const Sums& s, const Expr& number) {
  RunTile& r = s.r;
  Body body;
  const Expr point = r.name(body, "point", r.shape.points(), number),
             target = r.name(body, "target", r.shape.targets, floor_div(point, r.shape.packs)),
             t = r.name(body, "t", r.most, min(max(target - r.lowest, 0), r.most - 1)),
             begin = r.chosen(body, "begin", r.shape.updates + 1, r.read(body, r.begins, t)),
             end = r.chosen(body, "end", r.shape.updates + 1, r.read(body, r.begins, t + 1));
  if (!r.base.inner.empty())
    body.push_back(let(r.p.kernel.axes[r.base.inner[0]].name, r.shape.targets, target));
  const Pack pack = named_pack(s, body, mod(point, r.shape.packs));
  if (r.again < 0) {
    append(body, begin_pack(s, pack));
    append(body, add_updates(s, begin, end, pack));
    append(body, store_pack(s, pack));
    return body;
  }
  const int again = r.read(body, r.again),
            is_first = r.ask(body, Op::eq, again, r.number(0, DType::boolean)),
            has_any = r.ask(body, Op::lt, r.data(body, begin), r.data(body, end));
  Body rest = {if_true(is_first, begin_pack(s, pack)), otherwise(go_on(s, pack))};
  append(rest, add_updates(s, begin, end, pack));
  rest.push_back(if_true(is_first, store_pack(s, pack)));
  rest.push_back(otherwise(store_again(s, pack)));
  body.push_back(if_true(r.ask(body, Op::bitwise_or, is_first, has_any), std::move(rest)));
  return body;
}

Body over_run(RunTile& r) {
  const Sums s{r};
  const int64_t turns = ceil_divide(r.shape.run, RunShape::threads);
  const Expr q = turns == 1 ? Expr(0) : r.index("q", turns),
             at = r.first + q * RunShape::threads + r.thread;
  Body body = {if_less(at, r.last, own_pack(s, at))};
  if (turns == 1) return body;
  return {for_each(q.name(), turns, false, std::move(body))};
}

}  // namespace

Tile lower_runs(const Program& program, const Kernel& kernel) {
  RunTile run(program, kernel);
  Body body = run.name_run();
  if (!run.shape.is_ordered) {
    append(body, over_found(run, [&] { return over_run(run); }));
  } else {
    append(body, ordered_list(run));
    append(body, over_run(run));
  }
  run.p.tile.body = std::move(body);
  return numbered(std::move(run.p.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
