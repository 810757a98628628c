// How does one thread scatter? One update after the other. Where their order shows, thousands go chunk by
// chunk (graph/scan.h): a later chunk's updates of a place are added up before they are added to it:
//
//   scatter y[at0; at0 = load k[j0] < 50257] for (j0: 8192) = scatter_add load d[j0]
// =>
//   for e: 1024 = 0 .. 1024 { .. update scatter_add $0 < 50257: y[at0] = $1 }
//   for c: 8 = 1 .. 8 {
//     for e: 1024 = 0 .. left { .. chosen[e] = $0 ; values[e] = $1 }
//     update scatter_add chosen x left < 50257: y[at0] = values x1 of 1
//   }
//
// Rows side by side that share their places are lanes of a chunk's values.
#include "tiny_compile/tile/row_updates.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/columns.h"
#include "tiny_compile/tile/row_chunks.h"

namespace tiny_compile {
namespace {

constexpr int64_t kRun = 32;  // updates that are looked through at once

class RowUpdates {
 public:
  RowUpdates(RowTile& r, int number)
      : r_(r), step_(r.kernel.steps[number]), wanted_(wanted_by(r, {&step_})) {}

  Body lower() {
    Body body = define_within(r_, wanted_, shared_scope(r_), r_.defined);
    const Expr count = inner_count(r_.kernel, step_);
    if (goes_in_chunks(r_.kernel, step_)) {
      append(body, in_chunks(count));
    } else {
      const Expr e = r_.index("e", count);
      body.push_back(for_range(e.name(), count, 0, count,
                               element(e, [&](Body& body) { append(body, one()); })));
    }
    mark_kept(r_, wanted_);
    return body;
  }

 private:
  Body element(const Expr& e, const AddToBody& each, const AddToBody& shared = nullptr) {
    return at_element({r_, step_, step_.dtype, inner_count(r_.kernel, step_), wanted_}, e, each,
                      shared);
  }

  Body one() const {
    Body body = {update(step_.op, step_.buffer, step_.index, step_.limit, r_.ids[step_.rhs],
                        r_.ids[step_.value])};
    if (step_.mask < 0) return body;
    return {if_true(r_.ids[step_.mask], std::move(body))};
  }

  Body in_chunks(const Expr& count) {
    const Expr first = min(count, kChunk), l = r_.index("e", kChunk);
    const Expr chunks = ceil_div(count, kChunk), c = r_.index("c", chunks);
    Body body = {for_range(l.name(), kChunk, 0, first,
                           element(l, [&](Body& body) { append(body, one()); }))};
    body.push_back(for_range(c.name(), chunks, 1, chunks, chunk(count, c)));
    return body;
  }

  Body chunk(const Expr& count, const Expr& c) {
    return r_.is_alone() ? found_chunk(count, c) : summed_chunk(count, c);
  }

  // A thread of a GPU has no room for the partial results: from the first update of a place on it looks
  // for the others.
  Body found_chunk(const Expr& count, const Expr& c) {
    const DType dtype = r_.program.buffers[step_.buffer].type.dtype;
    const Found f{scratch(r_, "is_first", DType::boolean, 1),
                  scratch(r_, "here", DType::i64, 1),
                  scratch(r_, str("part_", dtype), dtype, 1),
                  c,
                  r_.index("e", kChunk),
                  r_.index("left", kChunk + 1)};
    const auto each = [&](Body& body) {
      const int place = chosen_place(body, r_.ids),
                none = add_constant(r_.tile, Literal::of_integer(DType::i64, -1));
      body.push_back(set(f.here, 0, place));
      body.push_back(set(f.part, 0, r_.ids[step_.value]));
      body.push_back(
          set(f.first, 0, computed(r_.tile, body, Op::ne, DType::boolean, {place, none})));
      body.push_back(look_before(f));
      Body first = {add_behind(f)};
      const int sum = read_back(r_, first, f.part, 0);
      first.push_back(update(step_.op, step_.buffer, step_.index, step_.limit, place, sum));
      body.push_back(if_true(read_back(r_, body, f.first, 0), std::move(first)));
    };
    return {let(f.left.name(), kChunk + 1, min(max(count - c * kChunk, 0), kChunk)),
            for_range(f.e.name(), kChunk, 0, f.left, element(c * kChunk + f.e, each))};
  }

  // Of an update: whether it is the first of its place, which place, and what comes there.
  struct Found {
    int first, here, part;  // arrays
    Expr c, e, left;        // the chunk, which of its updates, and how many these are
  };

  // each(body, what `op` says of update k's place and this one's, update k's value)
  Statement others(const Found& f, Op op, const Expr& from, const Expr& to,
                   const std::function<void(Body&, int, int)>& each) {
    const Expr k = r_.index("k", kChunk), flat = f.c * kChunk + k;
    RowElement e = element_at(r_, wanted_, {{}, r_.ids, r_.defined},
                              {flat, unflatten(r_.kernel, step_.inner, flat)});
    const int place = chosen_place(e.body, e.ids), own = read_back(r_, e.body, f.here, 0);
    each(e.body, computed(r_.tile, e.body, op, DType::boolean, {place, own}),
         e.ids[step_.value]);
    return for_range(k.name(), kChunk, from, to, std::move(e.body));
  }

  // As long as there is none before it.
  Statement look_before(const Found& f) {
    const Expr run = r_.index("run", kChunk / kRun), begin = run * kRun;
    Body some = {
        others(f, Op::ne, begin, min(begin + kRun, f.e), [&](Body& body, int differs, int) {
          const int still = read_back(r_, body, f.first, 0);
          const int is =
              computed(r_.tile, body, Op::bitwise_and, DType::boolean, {still, differs});
          body.push_back(set(f.first, 0, is));
        })};
    Body asked;
    const int still = read_back(r_, asked, f.first, 0);
    asked.push_back(if_true(still, std::move(some)));
    return for_range(run.name(), kChunk / kRun, 0, ceil_div(f.e, kRun), std::move(asked));
  }

  Statement add_behind(const Found& f) {
    const DType dtype = r_.tile.arrays[f.part].dtype;
    return others(f, Op::eq, f.e + 1, f.left, [&](Body& body, int same, int value) {
      Body more;
      const int so_far = read_back(r_, more, f.part, 0);
      more.push_back(
          set(f.part, 0, computed(r_.tile, more, *combiner(step_.op), dtype, {so_far, value})));
      body.push_back(if_true(same, std::move(more)));
    });
  }

  Body summed_chunk(const Expr& count, const Expr& c) {
    const DType dtype = r_.program.buffers[step_.buffer].type.dtype;
    const int64_t width = r_.lanes ? r_.lanes->most : 1;
    const int chosen = add_array(r_.tile, {str("chosen", r_.tile.arrays.size()), DType::i64,
                                           kChunk, Space::L1}),
              values = add_array(r_.tile, {str("values", r_.tile.arrays.size()), dtype,
                                           kChunk * width, Space::L1});
    const Expr left = r_.index("left", kChunk + 1), l = r_.index("e", kChunk);
    const auto put = [&](Body& body) {
      body.push_back(set(values, own_place(r_, l), r_.ids[step_.value]));
    };
    const auto choose = [&](Body& body) {
      const int place = chosen_place(body, r_.ids);
      body.push_back(set(chosen, l, place));
    };
    Statement all = update(step_.op, step_.buffer, step_.index, step_.limit, chosen, -1);
    all.kind = StatementKind::UpdateAll;
    all.array = values;
    all.left = left;
    all.width = static_cast<int>(width);
    all.from = 1;
    if (r_.lanes) {
      all.from = r_.lanes->stop - r_.lanes->start;
      all.index = substitute(all.index, {{r_.lanes->axis.name, r_.lanes->start}});
    }
    return {let(left.name(), kChunk + 1, min(max(count - c * kChunk, 0), kChunk)),
            for_range(l.name(), kChunk, 0, left, element(c * kChunk + l, put, choose)), all};
  }

  // The place of an element with these scalars; where the mask is false -1; the first that is none for all
  // below 0.
  int chosen_place(Body& body, const std::vector<int>& ids) {
    const auto number = [&](const Expr& value) { return as_data(r_.tile, body, value); };
    const int beyond = number(step_.limit);
    int place = ids[step_.rhs];
    const int below = computed(r_.tile, body, Op::lt, DType::boolean, {place, number(0)});
    place = computed(r_.tile, body, Op::where, DType::i64, {below, beyond, place});
    if (step_.mask >= 0)
      place =
          computed(r_.tile, body, Op::where, DType::i64, {ids[step_.mask], place, number(-1)});
    return place;
  }

  RowTile& r_;
  const Step& step_;
  const std::vector<int> wanted_;
};

}  // namespace

Body update_row(RowTile& r, int number) { return RowUpdates(r, number).lower(); }

}  // namespace tiny_compile
