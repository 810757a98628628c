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

class Runs {
 public:
  explicit Runs(RunTile& run) : r_(run), ahead_(run.shape.vector > 4 ? 3 : 5) {}

  Body over_run() {
    sum_ = r_.own("sum", r_.dtype, r_.shape.vector);
    next_ = r_.own("next", r_.dtype, ahead_ * r_.shape.vector);
    if (in_chunks()) {
      part_ = r_.own("part", r_.dtype, r_.shape.vector);
      chunk_ = r_.own("chunk", DType::i32);
    }
    const int64_t turns = ceil_divide(r_.shape.run, RunShape::threads);
    const Expr q = turns == 1 ? Expr(0) : r_.index("q", turns),
               at = r_.first + q * RunShape::threads + r_.thread;
    Body body = {if_less(at, r_.last, own_pack(at))};
    if (turns == 1) return body;
    return {for_each(q.name(), turns, false, std::move(body))};
  }

 private:
  bool in_chunks() const {
    return r_.shape.updates > kChunk && scatters_in_chunks(r_.scatter.op, r_.dtype);
  }

  Body over_pack(Body each) const {
    if (r_.shape.vector == 1) return each;
    return {for_each("v", r_.shape.vector, true, std::move(each))};
  }

  // array[place of v] = the step's value, for each element of the pack.
  Body evaluate(PointScope scope, const Step& step, int array, const Expr& place,
                const At& at) {
    Body body = define_over(r_.p, scope, needed(r_.p, scope, {step.value}), ~last_row(r_.p));
    append(body, load_packs(r_.p, scope, needed(r_.p, scope, {step.value}), at));
    Body each = define_over(r_.p, scope, needed(r_.p, scope, {step.value}), ~uint64_t{0});
    each.push_back(set(array, place + element(r_.p), r_.p.ids[step.value]));
    append(body, over_points(at, std::move(each)));
    return body;
  }

  // A point alone has its place named already.
  Body over_points(const At& at, Body each) const {
    return r_.shape.vector == 1 ? each : tiny_compile::over_points(r_.p, at, std::move(each));
  }

  Body own_pack(const Expr& number) {
    Body body;
    const Expr point = r_.name(body, "point", r_.shape.points(), number),
               target =
                   r_.name(body, "target", r_.shape.targets, floor_div(point, r_.shape.packs)),
               t = r_.name(body, "t", r_.most, min(max(target - r_.lowest, 0), r_.most - 1)),
               begin =
                   r_.chosen(body, "begin", r_.shape.updates + 1, r_.read(body, r_.begins, t)),
               end = r_.chosen(body, "end", r_.shape.updates + 1,
                               r_.read(body, r_.begins, t + 1));
    const Expr start =
        r_.name(body, "start", last(r_.p).extent,
                mod(mod(point, r_.shape.packs) * r_.shape.vector, last(r_.p).extent));
    append(
        body,
        unpack(r_.p.kernel, r_.p.outer,
               floor_div(mod(point, r_.shape.packs) * r_.shape.vector, last(r_.p).extent), {}));
    if (!r_.base.inner.empty())
      body.push_back(let(r_.p.kernel.axes[r_.base.inner[0]].name, r_.shape.targets, target));
    if (r_.shape.vector == 1) body.push_back(let(last(r_.p).name, last(r_.p).extent, start));
    At pack;
    pack.column = start;
    if (r_.again < 0) {
      append(body, begin_pack(pack));
      append(body, add_updates(begin, end, pack));
      append(body, store_pack(pack));
      return body;
    }
    const int again = r_.read(body, r_.again),
              is_first = r_.ask(body, Op::eq, again, r_.number(0, DType::boolean)),
              has_any = r_.ask(body, Op::lt, r_.data(body, begin), r_.data(body, end));
    Body rest = {if_true(is_first, begin_pack(pack)), otherwise(go_on(pack))};
    append(rest, add_updates(begin, end, pack));
    rest.push_back(if_true(is_first, store_pack(pack)));
    rest.push_back(otherwise(store_again(pack)));
    body.push_back(if_true(r_.ask(body, Op::bitwise_or, is_first, has_any), std::move(rest)));
    return body;
  }

  Body begin_pack(const At& pack) {
    Body body = evaluate(nothing(r_.p), r_.base, in_chunks() ? part_ : sum_, 0, pack);
    if (in_chunks()) append(body, over_pack({set(sum_, element(r_.p), nothing_yet())}));
    return body;
  }

  // From what the lists before have given.
  Body go_on(const At& pack) {
    Body each;
    const int sum = load_from(r_.p.tile, each, r_.base.buffer, r_.dtype, r_.base.index);
    each.push_back(set(sum_, element(r_.p), sum));
    if (in_chunks()) each.push_back(set(part_, element(r_.p), nothing_yet()));
    return over_points(pack, std::move(each));
  }

  int nothing_yet() { return add_constant(r_.p.tile, identity(r_.scatter.op, r_.dtype)); }

  int combined(Body& body, int a, int b) {
    return updated(r_.p.tile, body, r_.scatter.op, r_.dtype, a, b);
  }

  // sum[v] = sum[v] and part[v], whose next chunk begins with nothing.
  Body end_chunk() {
    const Expr v = element(r_.p);
    Body body;
    const int sum = r_.read(body, sum_, v), part = r_.read(body, part_, v);
    body.push_back(set(sum_, v, combined(body, sum, part)));
    body.push_back(set(part_, v, nothing_yet()));
    return over_pack(std::move(body));
  }

  // Number n of the list, as an integer.
  Expr listed(Body& body, const Expr& n) {
    if (r_.shape.is_ordered) return r_.ordered(body, n);
    return r_.chosen(body, "u", r_.shape.updates, r_.read(body, r_.sorted, n));
  }

  Body add_updates(const Expr& begin, const Expr& end, const At& pack) {
    const int64_t groups = ceil_divide(r_.shape.updates, ahead_);
    const Expr g = r_.index("g", groups), k = r_.index("k", ahead_), n = begin + g * ahead_ + k;
    const int64_t most =
        r_.sorted < 0 ? r_.shape.updates : r_.p.tile.arrays[r_.sorted].size.constant();
    Body ask_for, add;
    const Expr at = r_.name(ask_for, "n", most, min(n, most - 1)), update = listed(ask_for, at);
    append(ask_for, unpack(r_.p.kernel, r_.scatter.inner, update, {}));
    append(ask_for, evaluate(nothing(r_.p), r_.scatter, next_, k * r_.shape.vector, pack));
    if (in_chunks()) {
      Body other = end_chunk();
      const Expr which = listed(add, r_.name(add, "n", most, min(n, most - 1)));
      const int here = r_.data(add, floor_div(which, kChunk));
      other.push_back(set(chunk_, 0, here));
      add.push_back(if_true(r_.ask(add, Op::ne, here, r_.read(add, chunk_)), std::move(other)));
    }
    const int to = in_chunks() ? part_ : sum_;
    const Expr v = element(r_.p);
    Body one;
    const int so_far = r_.read(one, to, v), next = r_.read(one, next_, k * r_.shape.vector + v);
    one.push_back(set(to, v, combined(one, so_far, next)));
    append(add, over_pack(std::move(one)));
    const auto each = [&](Body body) {
      return for_each(k.name(), ahead_, true, {if_less(n, end, std::move(body))});
    };
    Body body;
    if (in_chunks()) body.push_back(set(chunk_, 0, r_.number(0)));
    body.push_back(for_range(g.name(), groups, 0,
                             min(ceil_div(max(end - begin, 0), ahead_), groups),
                             {each(std::move(ask_for)), each(std::move(add))}));
    if (in_chunks()) append(body, end_chunk());
    return body;
  }

  Body store_pack(const At& pack) {
    if (is_wide(r_.p, r_.base.index, r_.base.buffer))
      return {store_vector(r_.base.buffer, at_start(r_.p, r_.base.index, pack), sum_, 0,
                           r_.shape.vector)};
    Body each;
    const int sum = r_.read(each, sum_, element(r_.p));
    each.push_back(store(r_.base.buffer, r_.base.index, sum));
    return over_points(pack, std::move(each));
  }

  Body store_again(const At& pack) {
    Body each;
    const int sum = r_.read(each, sum_, element(r_.p));
    each.push_back(update_at(Op::scatter, r_.base.buffer, r_.base.index, sum));
    return over_points(pack, std::move(each));
  }

  RunTile& r_;
  const int64_t
      ahead_;  // updates that are asked for at once: a thread has seven predicates, and a pack four registers
  int sum_ = -1, next_ = -1, part_ = -1, chunk_ = -1;
};

}  // namespace

Tile lower_runs(const Program& program, const Kernel& kernel) {
  RunTile run(program, kernel);
  Body body = run.name_run();
  const auto over_run = [&] { return Runs(run).over_run(); };
  if (!run.shape.is_ordered) {
    append(body, over_found(run, over_run));
  } else {
    append(body, ordered_list(run));
    append(body, over_run());
  }
  run.p.tile.body = std::move(body);
  return numbered(std::move(run.p.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
