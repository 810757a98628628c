// How do threads scatter a row, where each target has its order? They sort a chunk of updates by place, and by
// number where places are equal; whoever holds the first of a target adds the target's updates up:
//
//   y[index[j]] += d[j]      index    7 2 7 9 2 7        sorted   2 @1 @4   7 @0 @2 @5   9 @3
//                                                        first    2         7            9
//   for c < 4 {
//     for q < 8 unrolled { e = ..; words[q] = the place and number of load index[e]; values[..] = load d[e] }   barrier
//     .. words in order (tile/sort_network.h) ..; sorted[..] = words[q]; ordered[..] = values[its number]   barrier
//     for q < 8 unrolled { if words[q] is the first of its target {
//       sum[0] = load y[target];  for j = .. to { sum[0] = add(sum[0], ordered[j]) }
//       update scatter: y[target] = sum[0] } }   barrier
//   }
//
// Where the order shows (graph/scan.h), the first chunk goes on from the data and a later one from the identity, and
// is then added to the target. A place that is none stands behind all others. Updates that all go to one place (what
// combines the results of chunks, split_scatter.h) are in order as they are.
#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/scatters.h"
#include "tiny_compile/tile/shared_rows.h"
#include "tiny_compile/tile/sort_network.h"

namespace tiny_compile {
namespace {

SortShape sort_shape(const ScatterShape& shape) {
  SortShape sort(shape.chunk(), shape.chunk(), shape.own);
  sort.rows = shape.rows;
  return sort;
}

// A step that scatters, by the threads of a row.
struct Chunks {
  SharedRows& s;
  const ScatterShape& shape;
  const Step step;  // without its order
  Tile& tile = s.r.tile;
  const DType dtype = step.dtype;
  const int64_t chunk = shape.chunk(), updates = inner_count(s.r.kernel, step).constant();
  const int64_t chunks = ceil_divide(updates, chunk);
  const int64_t room = shape.rows * chunk;  // of a block's updates
  const int64_t limit = std::max<int64_t>(step.limit.constant(), 1);
  const bool in_chunks = goes_in_chunks(s.r.kernel, step);
  const SortWords words{tile, word_bits_of_numbers(limit + 1, chunk)};
  const Expr c = chunks == 1 ? Expr(0) : s.r.index("c", chunks);
  const int values = array(str("values_", dtype), dtype, room, Space::Shared);

  // All steps use the same.
  int array(const std::string& name, DType type, int64_t size, Space space) const {
    return array_once(tile, {name, type, size, space});
  }
  int ask(Body& body, Op op, int a, int b) const {
    return words.make(body, op, DType::boolean, {a, b});
  }
  int number(int64_t value) const { return words.number(DType::i64, value); }
  int i32(int64_t value) const { return words.number(DType::i32, value); }
};

// --- updates by their number -----------------------------------------------------------------

Expr first_of_chunk(const Chunks& k) { return k.c * k.chunk; }

bool is_whole(const Chunks& k) { return k.updates % k.chunk == 0; }

// Names the update that stands at this place of the chunk, or the last one.
Expr name_update(const Chunks& k, Body& body, const Expr& at) {
  const Expr e = k.s.r.index("e", k.updates), number = first_of_chunk(k) + at;
  body.push_back(let(e.name(), k.updates, is_whole(k) ? number : min(number, k.updates - 1)));
  return e;
}

// --- what is added, update by update ---------------------------------------------------------

// The place of a target, which an integer names.
Expr at_target(const Chunks& k, const Expr& target) {
  return substitute(k.step.index, {{indirect(0), target}});
}

int combined(const Chunks& k, Body& body, int a, int b) {
  return updated(k.tile, body, k.step.op, k.dtype, a, b);
}

// value(j) of updates from .. to - 1, in order, to the target.
Body add_up(const Chunks& k, const Expr& target, const Expr& from, const Expr& to,
            const std::function<int(Body&, const Expr&)>& value) {
  Body body;
  const int sum = k.array(str("sum_", k.dtype), k.dtype, 1, Space::Register),
            old = load_from(k.tile, body, k.step.buffer, k.dtype, at_target(k, target));
  const bool goes_on = k.in_chunks && k.chunks > 1;
  const int nothing = add_constant(k.tile, identity(k.step.op, k.dtype)),
            is_first =
                goes_on ? k.ask(body, Op::lt, as_data(k.tile, body, k.c), k.number(1)) : -1;
  body.push_back(
      set(sum, 0,
          goes_on ? k.words.make(body, Op::where, k.dtype, {is_first, old, nothing}) : old));
  const Expr j = k.s.r.index("j", k.chunk);
  Body each;
  const int next = value(each, j), so_far = read_element(k.tile, each, sum, 0);
  each.push_back(set(sum, 0, combined(k, each, so_far, next)));
  body.push_back(for_range(j.name(), k.chunk, from, to, std::move(each)));
  int total = read_element(k.tile, body, sum, 0);
  if (goes_on) {
    const int both = combined(k, body, old, total);
    total = k.words.make(body, Op::where, k.dtype, {is_first, total, both});
  }
  body.push_back(update_at(Op::scatter, k.step.buffer, at_target(k, target), total));
  return body;
}

Body chain(const Chunks& k) {
  const Expr q = k.s.r.index("q", k.shape.own), at = q * k.shape.threads + k.s.element;
  Body give;
  const Expr e = name_update(k, give, at);
  give.push_back(
      set(k.values, k.s.of_row * k.chunk + at, k.s.scalars_at(give, k.step, e)[k.step.value]));
  Body body = {for_each(q.name(), k.shape.own, true, std::move(give)), barrier()};
  const Expr there = min(k.updates - first_of_chunk(k), k.chunk);
  const Body all = add_up(k, 0, 0, there, [&](Body& each, const Expr& j) {
    return read_element(k.tile, each, k.values, k.s.own * k.chunk + j);
  });
  body.push_back(if_less(k.s.thread, 1, k.s.where_there(all)));
  return body;
}

// --- a chunk in order: what is read ----------------------------------------------------------

// A chunk's words and values, by place and number.
struct InOrder {
  const SortWordArray words, sorted;  // a thread's, a block's
  const int ordered;
  int ends = -1;  // behind the updates of the target of each of the thread's words
};

Expr slot(const Chunks& k, const Expr& row, const Expr& at) {
  return row * k.shape.slots() + at + floor_div(at, kLanes);
}

// Which updates count, and which would if their places were some.
struct Fit {
  int counts, strays;
};
Fit fit_of(const Chunks& k, Body& body, const std::vector<int>& ids, const Expr& at) {
  const int place = ids[k.step.rhs], limit = k.number(k.step.limit.constant()),
            begins = k.ask(body, Op::ge, place, k.number(0)),
            ends = k.ask(body, Op::lt, place, limit);
  Fit fit{k.ask(body, Op::bitwise_and, begins, ends), -1};
  fit.strays = k.ask(body, Op::eq, fit.counts, k.words.number(DType::boolean, 0));
  const auto only_if = [&](int holds) {
    fit.counts = k.ask(body, Op::bitwise_and, fit.counts, holds);
    fit.strays = k.ask(body, Op::bitwise_and, fit.strays, holds);
  };
  if (k.step.mask >= 0) only_if(ids[k.step.mask]);
  if (!is_whole(k)) {
    const int at_number = as_data(k.tile, body, first_of_chunk(k) + at);
    only_if(k.ask(body, Op::lt, at_number, k.number(k.updates)));
  }
  return fit;
}

// An update of no place raises its error; behind all loads, which would wait for it.
Statement tell(const Chunks& k, const Expr& q, const Expr& at) {
  Body body;
  const Expr e = name_update(k, body, at);
  const std::vector<int> ids = k.s.scalars_at(body, k.step, e);
  const Fit fit = fit_of(k, body, ids, at);
  body.push_back(
      if_true(fit.strays, {update(k.step.op, k.step.buffer, k.step.index, k.step.limit,
                                  ids[k.step.rhs], ids[k.step.value])}));
  return for_each(q.name(), k.shape.own, false, std::move(body));
}

SortWord sorted_at(const Chunks& k, const InOrder& o, Body& body, const Expr& at) {
  return k.words.read(body, o.sorted, slot(k, k.s.own, at));
}

// Those of the thread's own row.
Body take_words(const Chunks& k, const InOrder& o) {
  const Expr q = k.s.r.index("q", k.shape.own);
  Body body;
  const SortWord word = sorted_at(k, o, body, q * k.shape.threads + k.s.thread);
  k.words.put(body, o.words, q, word);
  return {for_each(q.name(), k.shape.own, true, std::move(body)), barrier()};
}

// words[q] and the values: of places that are none, `limit`, behind all targets.
Body read(const Chunks& k, const InOrder& o) {
  const int strays = k.array("strays", DType::boolean, 1, Space::Register);
  const Expr q = k.s.r.index("q", k.shape.own), at = q * k.shape.threads + k.s.element;
  Body body;
  const Expr e = name_update(k, body, at);
  const std::vector<int> ids = k.s.scalars_at(body, k.step, e);
  const Fit fit = fit_of(k, body, ids, at);
  const int target =
                k.words.make(body, Op::where, DType::i64,
                             {fit.counts, ids[k.step.rhs], k.number(k.step.limit.constant())}),
            key = k.words.make(body, Op::cast, DType::u32, {target}),
            word = k.words.of(body, key, as_data(k.tile, body, at)).key;
  if (k.s.across)
    body.push_back(set(o.sorted.keys, slot(k, k.s.of_row, at), word));
  else
    body.push_back(set(o.words.keys, q, word));
  body.push_back(set(k.values, k.s.of_row * k.chunk + at, ids[k.step.value]));
  const int so_far = read_element(k.tile, body, strays, 0);
  body.push_back(set(strays, 0, k.ask(body, Op::bitwise_or, so_far, fit.strays)));
  Body all = {set(strays, 0, k.words.number(DType::boolean, 0)),
              for_each(q.name(), k.shape.own, true, std::move(body))};
  const int any = read_element(k.tile, all, strays, 0);
  all.push_back(if_true(any, {tell(k, q, at)}));
  all.push_back(barrier());
  if (k.s.across) append(all, take_words(k, o));
  return all;
}

// --- a chunk in order: what is added ---------------------------------------------------------

// Words and values in their order.
Statement give_ordered(const Chunks& k, const InOrder& o) {
  const Expr q = k.s.r.index("q", k.shape.own), n = k.s.r.index("n", k.chunk),
             place = slot(k, k.s.own, k.s.thread * k.shape.own + q);
  Body body;
  const SortWord word = k.words.read(body, o.words, q);
  body.push_back(set(o.sorted.keys, place, word.key));
  const int number = k.words.place(body, word);
  body.push_back(let_chosen(n.name(), k.chunk, number));
  const int value = read_element(k.tile, body, k.values, k.s.own * k.chunk + n);
  body.push_back(set(o.ordered, place, value));
  return for_each(q.name(), k.shape.own, true, std::move(body));
}

Statement look_on(const Chunks& k, const InOrder& o, int own) {
  const int last = k.shape.own - 1;
  const Expr s = k.s.r.index("s", log2_of(k.chunk)), m = k.s.r.index("m", k.chunk);
  Body body, there;
  const int so_far = read_element(k.tile, body, o.ends, last),
            power = k.words.make(body, Op::shift_right, DType::i32,
                                 {k.i32(k.chunk / 2), as_data(k.tile, body, s, DType::i32)}),
            next = k.words.make(body, Op::add, DType::i32, {so_far, power}),
            is_there = k.ask(body, Op::le, next, k.i32(k.chunk)),
            at = k.words.make(there, Op::sub, DType::i32, {next, k.i32(1)});
  there.push_back(let_chosen(m.name(), k.chunk, at));
  const int same = k.ask(there, Op::eq, k.words.key(there, sorted_at(k, o, there, m)), own);
  there.push_back(
      set(o.ends, last, k.words.make(there, Op::where, DType::i32, {same, next, so_far})));
  body.push_back(if_true(is_there, std::move(there)));
  return for_each(s.name(), log2_of(k.chunk), false, std::move(body));
}

// ends[q]: behind the last update of the target of the thread's word q. Of its last word's target others may have
// more: by powers of two.
Body find_ends(const Chunks& k, const InOrder& o) {
  const int last = k.shape.own - 1;
  Body body;
  const int own = k.words.key(body, k.words.read(body, o.words, last));
  const Expr behind = k.s.thread * k.shape.own + k.shape.own;
  body.push_back(set(o.ends, last, as_data(k.tile, body, behind, DType::i32)));
  if (k.shape.threads > 1) body.push_back(look_on(k, o, own));
  const Expr q = k.s.r.index("q", std::max(last, 1)), at = last - 1 - q;
  Body each;
  const int mine = k.words.key(each, k.words.read(each, o.words, at)),
            next = k.words.key(each, k.words.read(each, o.words, at + 1)),
            differs = k.ask(each, Op::ne, mine, next),
            here = as_data(k.tile, each, k.s.thread * k.shape.own + at + 1, DType::i32),
            theirs = read_element(k.tile, each, o.ends, at + 1);
  each.push_back(
      set(o.ends, at, k.words.make(each, Op::where, DType::i32, {differs, here, theirs})));
  if (last > 0) body.push_back(for_each(q.name(), last, true, std::move(each)));
  return body;
}

Body add_target(const Chunks& k, const InOrder& o, int own, const Expr& q) {
  const Expr target = k.s.r.index("target", k.limit), to = k.s.r.index("to", k.chunk + 1);
  Body body = {let_chosen(target.name(), k.limit, own)};
  body.push_back(let_chosen(to.name(), k.chunk + 1, read_element(k.tile, body, o.ends, q)));
  append(body,
         add_up(k, target, k.s.thread * k.shape.own + q, to, [&](Body& each, const Expr& j) {
           return read_element(k.tile, each, o.ordered, slot(k, k.s.own, j));
         }));
  return body;
}

// The thread's words, each of whose targets begins with it.
Body add_targets(const Chunks& k, const InOrder& o) {
  const int before =
      k.array(str("before_", k.words.type()), k.words.type(), 1, Space::Register);
  const Expr first = k.s.thread * k.shape.own, q = k.s.r.index("q", k.shape.own);
  Body body;
  const int none = k.words.number(k.words.type(), k.step.limit.constant()),
            previous = k.words.key(body, sorted_at(k, o, body, max(first - 1, 0))),
            begins = k.ask(body, Op::lt, as_data(k.tile, body, first), k.number(1));
  body.push_back(
      set(before, 0, k.words.make(body, Op::where, k.words.type(), {begins, none, previous})));
  Body each;
  const int own = k.words.key(each, k.words.read(each, o.words, q)),
            differs = k.ask(each, Op::ne, own, read_element(k.tile, each, before, 0)),
            is_target = k.ask(each, Op::lt, own, none),
            leads = k.ask(each, Op::bitwise_and, differs, is_target);
  each.push_back(set(before, 0, own));
  each.push_back(if_true(leads, k.s.where_there(add_target(k, o, own, q))));
  body.push_back(for_each(q.name(), k.shape.own, true, std::move(each)));
  return body;
}

Body sorted_chunk(const Chunks& k) {
  const int64_t slots = k.shape.rows * k.shape.slots();
  InOrder o{k.words.array("words", k.shape.own, Space::Register),
            k.words.array("sorted", slots, Space::Shared),
            k.array(str("ordered_", k.dtype), k.dtype, slots, Space::Shared)};
  Body body = read(k, o);
  append(body, sort_words(k.tile, k.words, sort_shape(k.shape), k.s.thread, k.s.own, o.words));
  body.push_back(give_ordered(k, o));
  body.push_back(barrier());
  o.ends = k.array("ends", DType::i32, k.shape.own, Space::Register);
  append(body, find_ends(k, o));
  append(body, add_targets(k, o));
  return body;
}

// --- a step ----------------------------------------------------------------------------------

Body scatter_step(SharedRows& rows, const ScatterShape& shape, Step step) {
  if (inner_count(rows.r.kernel, step).is_constant(0)) return {};
  step.order = -1;
  const Chunks k{rows, shape, step};
  Body body = is_chain(rows.r.kernel, k.step) ? chain(k) : sorted_chunk(k);
  body.push_back(barrier());
  if (k.chunks == 1) return body;
  return {for_each(k.c.name(), k.chunks, false, std::move(body))};
}

}  // namespace

Tile lower_chunks(const Program& program, const Kernel& kernel) {
  const ScatterShape shape(kernel);
  SharedRows rows(program, kernel, shape.threads, shape.rows, scatters_across(kernel));
  Body body = rows.begin();
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store) {
      append(body, rows.store_step(step));
      body.push_back(barrier());
    } else {
      append(body, scatter_step(rows, shape, step));
    }
  }
  rows.r.tile.body = std::move(body);
  return numbered(std::move(rows.r.tile), kernel.scalars.size());
}

bool has_scatter(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || row_count(kernel).is_constant(0)) return false;
  return scatters_by(program, kernel) != ScatterBy::Thread;
}

Tile lower_scatter(const Program& program, const Kernel& kernel) {
  switch (scatters_by(program, kernel)) {
    case ScatterBy::Runs: return lower_runs(program, kernel);
    case ScatterBy::Tables: return lower_tables(program, kernel);
    default: return lower_chunks(program, kernel);
  }
}

}  // namespace tiny_compile
