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

constexpr int kLanes = 32;

SortShape sort_shape(const ScatterShape& shape) {
  SortShape sort(shape.chunk(), shape.chunk(), shape.own);
  sort.rows = shape.rows;
  return sort;
}

// A step that scatters, by the threads of a row.
class ChunkedStep {
 public:
  ChunkedStep(SharedRows& rows, const ScatterShape& shape, const Step& step)
      : s_(rows),
        tile_(rows.r.tile),
        shape_(shape),
        step_(without_order(step)),
        dtype_(step.dtype),
        chunk_(shape.chunk()),
        updates_(inner_count(rows.r.kernel, step).constant()),
        chunks_(ceil_divide(updates_, chunk_)),
        limit_(std::max<int64_t>(step.limit.constant(), 1)),
        in_chunks_(goes_in_chunks(rows.r.kernel, step)),
        words_(tile_, word_bits_of_numbers(limit_ + 1, chunk_)),
        c_(chunks_ == 1 ? Expr(0) : rows.r.index("c", chunks_)) {}

  Body lower() {
    if (updates_ == 0) return {};
    values_ = array(str("values_", dtype_), dtype_, shape_.rows * chunk_, Space::Shared);
    Body body = is_chain(s_.r.kernel, step_) ? chain() : sorted_chunk();
    body.push_back(barrier());
    if (chunks_ == 1) return body;
    return {for_each(c_.name(), chunks_, false, std::move(body))};
  }

 private:
  static Step without_order(Step step) {
    step.order = -1;
    return step;
  }

  // All steps use the same.
  int array(const std::string& name, DType dtype, int64_t size, Space space) {
    return array_once(tile_, {name, dtype, size, space});
  }
  int ask(Body& body, Op op, int a, int b) {
    return words_.make(body, op, DType::boolean, {a, b});
  }
  int i32(int64_t value) const { return words_.number(DType::i32, value); }

  // --- what is read ---

  Expr slot(const Expr& row, const Expr& at) const {
    return row * shape_.slots() + at + floor_div(at, kLanes);
  }
  Expr first_of_chunk() const { return c_ * chunk_; }
  bool is_whole() const { return updates_ % chunk_ == 0; }

  // Names the update that stands at this place of the chunk, or the last one.
  Expr name_update(Body& body, const Expr& at) const {
    const Expr e = s_.r.index("e", updates_), number = first_of_chunk() + at;
    body.push_back(let(e.name(), updates_, is_whole() ? number : min(number, updates_ - 1)));
    return e;
  }

  // Which updates count, and which would if their places were some.
  struct Fit {
    int counts, strays;
  };
  Fit fit_of(Body& body, const std::vector<int>& ids, const Expr& at) {
    const int place = ids[step_.rhs], limit = number(step_.limit.constant()),
              begins = ask(body, Op::ge, place, number(0)),
              ends = ask(body, Op::lt, place, limit);
    Fit fit{ask(body, Op::bitwise_and, begins, ends), -1};
    fit.strays = ask(body, Op::eq, fit.counts, words_.number(DType::boolean, 0));
    const auto only_if = [&](int holds) {
      fit.counts = ask(body, Op::bitwise_and, fit.counts, holds);
      fit.strays = ask(body, Op::bitwise_and, fit.strays, holds);
    };
    if (step_.mask >= 0) only_if(ids[step_.mask]);
    if (!is_whole()) {
      const int at_number = as_data(tile_, body, first_of_chunk() + at);
      only_if(ask(body, Op::lt, at_number, number(updates_)));
    }
    return fit;
  }

  // words[q] and the values: of places that are none, `limit`, behind all targets.
  Body read(const SortWordArray& words) {
    const int strays = array("strays", DType::boolean, 1, Space::Register);
    const Expr q = s_.r.index("q", shape_.own), at = q * shape_.threads + s_.element;
    Body body;
    const Expr e = name_update(body, at);
    const std::vector<int> ids = s_.scalars_at(body, step_, e);
    const Fit fit = fit_of(body, ids, at);
    const int target =
                  words_.make(body, Op::where, DType::i64,
                              {fit.counts, ids[step_.rhs], number(step_.limit.constant())}),
              key = words_.make(body, Op::cast, DType::u32, {target}),
              word = words_.of(body, key, as_data(tile_, body, at)).key;
    if (s_.across)
      body.push_back(set(sorted_.keys, slot(s_.of_row, at), word));
    else
      body.push_back(set(words.keys, q, word));
    body.push_back(set(values_, s_.of_row * chunk_ + at, ids[step_.value]));
    const int so_far = read_element(tile_, body, strays, 0);
    body.push_back(set(strays, 0, ask(body, Op::bitwise_or, so_far, fit.strays)));
    Body all = {set(strays, 0, words_.number(DType::boolean, 0)),
                for_each(q.name(), shape_.own, true, std::move(body))};
    const int any = read_element(tile_, all, strays, 0);
    all.push_back(if_true(any, {tell(q, at)}));
    all.push_back(barrier());
    if (s_.across) append(all, take_words(words));
    return all;
  }

  // An update of no place raises its error; behind all loads, which would wait for it.
  Statement tell(const Expr& q, const Expr& at) {
    Body body;
    const Expr e = name_update(body, at);
    const std::vector<int> ids = s_.scalars_at(body, step_, e);
    const Fit fit = fit_of(body, ids, at);
    body.push_back(if_true(fit.strays, {update(step_.op, step_.buffer, step_.index, step_.limit,
                                               ids[step_.rhs], ids[step_.value])}));
    return for_each(q.name(), shape_.own, false, std::move(body));
  }

  // Those of the thread's own row.
  Body take_words(const SortWordArray& words) {
    const Expr q = s_.r.index("q", shape_.own);
    Body body;
    const SortWord word = sorted_at(body, q * shape_.threads + s_.thread);
    words_.put(body, words, q, word);
    return {for_each(q.name(), shape_.own, true, std::move(body)), barrier()};
  }

  // --- what is added ---

  // The place of a target, which an integer names.
  Expr at_target(const Expr& target) const {
    return substitute(step_.index, {{indirect(0), target}});
  }

  int combined(Body& body, int a, int b) {
    return updated(tile_, body, step_.op, dtype_, a, b);
  }

  // value(j) of updates from .. to - 1, in order, to the target.
  Body add_up(const Expr& target, const Expr& from, const Expr& to,
              const std::function<int(Body&, const Expr&)>& value) {
    Body body;
    const int sum = array(str("sum_", dtype_), dtype_, 1, Space::Register),
              old = load_from(tile_, body, step_.buffer, dtype_, at_target(target));
    const bool goes_on = in_chunks_ && chunks_ > 1;
    const int nothing = add_constant(tile_, identity(step_.op, dtype_)),
              is_first = goes_on ? ask(body, Op::lt, as_data(tile_, body, c_), number(1)) : -1;
    body.push_back(
        set(sum, 0,
            goes_on ? words_.make(body, Op::where, dtype_, {is_first, old, nothing}) : old));
    const Expr j = s_.r.index("j", chunk_);
    Body each;
    const int next = value(each, j), so_far = read_element(tile_, each, sum, 0);
    each.push_back(set(sum, 0, combined(each, so_far, next)));
    body.push_back(for_range(j.name(), chunk_, from, to, std::move(each)));
    int total = read_element(tile_, body, sum, 0);
    if (goes_on) {
      const int both = combined(body, old, total);
      total = words_.make(body, Op::where, dtype_, {is_first, total, both});
    }
    body.push_back(update_at(Op::scatter, step_.buffer, at_target(target), total));
    return body;
  }

  int number(int64_t value) const { return words_.number(DType::i64, value); }

  Body chain() {
    const Expr q = s_.r.index("q", shape_.own), at = q * shape_.threads + s_.element;
    Body give;
    const Expr e = name_update(give, at);
    give.push_back(
        set(values_, s_.of_row * chunk_ + at, s_.scalars_at(give, step_, e)[step_.value]));
    Body body = {for_each(q.name(), shape_.own, true, std::move(give)), barrier()};
    const Expr there = min(updates_ - first_of_chunk(), chunk_);
    const Body all = add_up(0, 0, there, [&](Body& each, const Expr& j) {
      return read_element(tile_, each, values_, s_.own * chunk_ + j);
    });
    body.push_back(if_less(s_.thread, 1, s_.where_there(all)));
    return body;
  }

  // --- a chunk in order ---

  int target_of(Body& body, const SortWord& word) { return words_.key(body, word); }
  SortWord sorted_at(Body& body, const Expr& at) {
    return words_.read(body, sorted_, slot(s_.own, at));
  }
  int word_number(int64_t value) const { return words_.number(words_.type(), value); }

  Body sorted_chunk() {
    const SortWordArray words = words_.array("words", shape_.own, Space::Register);
    sorted_ = words_.array("sorted", shape_.rows * shape_.slots(), Space::Shared);
    ordered_ =
        array(str("ordered_", dtype_), dtype_, shape_.rows * shape_.slots(), Space::Shared);
    Body body = read(words);
    append(body, sort_words(tile_, words_, sort_shape(shape_), s_.thread, s_.own, words));
    body.push_back(give_ordered(words));
    body.push_back(barrier());
    append(body, find_ends(words));
    append(body, add_targets(words));
    return body;
  }

  // Words and values in their order.
  Statement give_ordered(const SortWordArray& words) {
    const Expr q = s_.r.index("q", shape_.own), n = s_.r.index("n", chunk_),
               place = slot(s_.own, s_.thread * shape_.own + q);
    Body body;
    const SortWord word = words_.read(body, words, q);
    body.push_back(set(sorted_.keys, place, word.key));
    const int number = words_.place(body, word);
    body.push_back(let_chosen(n.name(), chunk_, number));
    const int value = read_element(tile_, body, values_, s_.own * chunk_ + n);
    body.push_back(set(ordered_, place, value));
    return for_each(q.name(), shape_.own, true, std::move(body));
  }

  // ends[q]: behind the last update of the target of the thread's word q. Of its last word's target others may have
  // more: by powers of two.
  Body find_ends(const SortWordArray& words) {
    ends_ = array("ends", DType::i32, shape_.own, Space::Register);
    const int last = shape_.own - 1;
    Body body;
    const int own = target_of(body, words_.read(body, words, last));
    const Expr behind = s_.thread * shape_.own + shape_.own;
    body.push_back(set(ends_, last, as_data(tile_, body, behind, DType::i32)));
    if (shape_.threads > 1) body.push_back(look_on(own));
    const Expr q = s_.r.index("q", std::max(last, 1)), at = last - 1 - q;
    Body each;
    const int mine = target_of(each, words_.read(each, words, at)),
              next = target_of(each, words_.read(each, words, at + 1)),
              differs = ask(each, Op::ne, mine, next),
              here = as_data(tile_, each, s_.thread * shape_.own + at + 1, DType::i32),
              theirs = read_element(tile_, each, ends_, at + 1);
    each.push_back(
        set(ends_, at, words_.make(each, Op::where, DType::i32, {differs, here, theirs})));
    if (last > 0) body.push_back(for_each(q.name(), last, true, std::move(each)));
    return body;
  }

  Statement look_on(int own) {
    const int last = shape_.own - 1;
    const Expr s = s_.r.index("s", log2_of(chunk_)), m = s_.r.index("m", chunk_);
    Body body, there;
    const int so_far = read_element(tile_, body, ends_, last),
              power = words_.make(body, Op::shift_right, DType::i32,
                                  {i32(chunk_ / 2), as_data(tile_, body, s, DType::i32)}),
              next = words_.make(body, Op::add, DType::i32, {so_far, power}),
              is_there = ask(body, Op::le, next, i32(chunk_)),
              at = words_.make(there, Op::sub, DType::i32, {next, i32(1)});
    there.push_back(let_chosen(m.name(), chunk_, at));
    const int same = ask(there, Op::eq, target_of(there, sorted_at(there, m)), own);
    there.push_back(
        set(ends_, last, words_.make(there, Op::where, DType::i32, {same, next, so_far})));
    body.push_back(if_true(is_there, std::move(there)));
    return for_each(s.name(), log2_of(chunk_), false, std::move(body));
  }

  // The thread's words, each of whose targets begins with it.
  Body add_targets(const SortWordArray& words) {
    const int before = array(str("before_", words_.type()), words_.type(), 1, Space::Register);
    const Expr first = s_.thread * shape_.own, q = s_.r.index("q", shape_.own);
    Body body;
    const int none = word_number(step_.limit.constant()),
              previous = target_of(body, sorted_at(body, max(first - 1, 0))),
              begins = ask(body, Op::lt, as_data(tile_, body, first), number(1));
    body.push_back(
        set(before, 0, words_.make(body, Op::where, words_.type(), {begins, none, previous})));
    Body each;
    const int own = target_of(each, words_.read(each, words, q)),
              differs = ask(each, Op::ne, own, read_element(tile_, each, before, 0)),
              is_target = ask(each, Op::lt, own, none),
              leads = ask(each, Op::bitwise_and, differs, is_target);
    each.push_back(set(before, 0, own));
    each.push_back(if_true(leads, s_.where_there(add_target(own, q))));
    body.push_back(for_each(q.name(), shape_.own, true, std::move(each)));
    return body;
  }

  Body add_target(int own, const Expr& q) {
    const Expr target = s_.r.index("target", limit_), to = s_.r.index("to", chunk_ + 1);
    Body body = {let_chosen(target.name(), limit_, own)};
    body.push_back(let_chosen(to.name(), chunk_ + 1, read_element(tile_, body, ends_, q)));
    append(body, add_up(target, s_.thread * shape_.own + q, to, [&](Body& each, const Expr& j) {
             return read_element(tile_, each, ordered_, slot(s_.own, j));
           }));
    return body;
  }

  SharedRows& s_;
  Tile& tile_;
  const ScatterShape& shape_;
  const Step step_;
  const DType dtype_;
  const int64_t chunk_, updates_, chunks_, limit_;
  const bool in_chunks_;
  const SortWords words_;
  const Expr c_;
  int values_ = -1, ordered_ = -1, ends_ = -1;
  SortWordArray sorted_;
};

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
      append(body, ChunkedStep(rows, shape, step).lower());
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
