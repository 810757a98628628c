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

// The updates of a step, and the scalars that they need.
struct Updates {
  RowTile& r;
  const Step& step;
  const std::vector<int> wanted;
};

Body element(const Updates& u, const Expr& e, const AddToBody& each,
             const AddToBody& shared = nullptr) {
  return at_element({u.r, u.step, u.step.dtype, inner_count(u.r.kernel, u.step), u.wanted}, e,
                    each, shared);
}

Body one(const Updates& u) {
  Body body = {update(u.step.op, u.step.buffer, u.step.index, u.step.limit, u.r.ids[u.step.rhs],
                      u.r.ids[u.step.value])};
  if (u.step.mask < 0) return body;
  return {if_true(u.r.ids[u.step.mask], std::move(body))};
}

// The place of an element with these scalars; where the mask is false -1; the first that is none for all
// below 0.
int chosen_place(const Updates& u, Body& body, const std::vector<int>& ids) {
  const auto number = [&](const Expr& value) { return as_data(u.r.tile, body, value); };
  const int beyond = number(u.step.limit);
  int place = ids[u.step.rhs];
  const int below = computed(u.r.tile, body, Op::lt, DType::boolean, {place, number(0)});
  place = computed(u.r.tile, body, Op::where, DType::i64, {below, beyond, place});
  if (u.step.mask >= 0)
    place =
        computed(u.r.tile, body, Op::where, DType::i64, {ids[u.step.mask], place, number(-1)});
  return place;
}

// --- a chunk, by looking for others ----------------------------------------------------------
// A thread of a GPU has no room for the partial results: from the first update of a place on it looks for the others.

// Of an update: whether it is the first of its place, which place, and what comes there.
struct Found {
  int first, here, part;  // arrays
  Expr c, e, left;        // the chunk, which of its updates, and how many these are
};

// each(body, what `op` says of update k's place and this one's, update k's value)
Statement others(const Updates& u, const Found& f, Op op, const Expr& from, const Expr& to,
                 const std::function<void(Body&, int, int)>& each) {
  const Expr k = u.r.index("k", kChunk), flat = f.c * kChunk + k;
  RowElement e = element_at(u.r, u.wanted, {{}, u.r.ids, u.r.defined},
                            {flat, unflatten(u.r.kernel, u.step.inner, flat)});
  const int place = chosen_place(u, e.body, e.ids), own = read_back(u.r, e.body, f.here, 0);
  each(e.body, computed(u.r.tile, e.body, op, DType::boolean, {place, own}),
       e.ids[u.step.value]);
  return for_range(k.name(), kChunk, from, to, std::move(e.body));
}

// As long as there is none before it.
Statement look_before(const Updates& u, const Found& f) {
  const Expr run = u.r.index("run", kChunk / kRun), begin = run * kRun;
  Body some = {
      others(u, f, Op::ne, begin, min(begin + kRun, f.e), [&](Body& body, int differs, int) {
        const int still = read_back(u.r, body, f.first, 0);
        const int is =
            computed(u.r.tile, body, Op::bitwise_and, DType::boolean, {still, differs});
        body.push_back(set(f.first, 0, is));
      })};
  Body asked;
  const int still = read_back(u.r, asked, f.first, 0);
  asked.push_back(if_true(still, std::move(some)));
  return for_range(run.name(), kChunk / kRun, 0, ceil_div(f.e, kRun), std::move(asked));
}

Statement add_behind(const Updates& u, const Found& f) {
  const DType dtype = u.r.tile.arrays[f.part].dtype;
  return others(u, f, Op::eq, f.e + 1, f.left, [&](Body& body, int same, int value) {
    Body more;
    const int so_far = read_back(u.r, more, f.part, 0);
    more.push_back(
        set(f.part, 0, computed(u.r.tile, more, *combiner(u.step.op), dtype, {so_far, value})));
    body.push_back(if_true(same, std::move(more)));
  });
}

Body found_chunk(const Updates& u, const Expr& count, const Expr& c) {
  const DType dtype = u.r.program.buffers[u.step.buffer].type.dtype;
  const Found f{scratch(u.r, "is_first", DType::boolean, 1),
                scratch(u.r, "here", DType::i64, 1),
                scratch(u.r, str("part_", dtype), dtype, 1),
                c,
                u.r.index("e", kChunk),
                u.r.index("left", kChunk + 1)};
  const auto each = [&](Body& body) {
    const int place = chosen_place(u, body, u.r.ids),
              none = add_constant(u.r.tile, Literal::of_integer(DType::i64, -1));
    body.push_back(set(f.here, 0, place));
    body.push_back(set(f.part, 0, u.r.ids[u.step.value]));
    body.push_back(
        set(f.first, 0, computed(u.r.tile, body, Op::ne, DType::boolean, {place, none})));
    body.push_back(look_before(u, f));
    Body first = {add_behind(u, f)};
    const int sum = read_back(u.r, first, f.part, 0);
    first.push_back(update(u.step.op, u.step.buffer, u.step.index, u.step.limit, place, sum));
    body.push_back(if_true(read_back(u.r, body, f.first, 0), std::move(first)));
  };
  return {let(f.left.name(), kChunk + 1, min(max(count - c * kChunk, 0), kChunk)),
          for_range(f.e.name(), kChunk, 0, f.left, element(u, c * kChunk + f.e, each))};
}

// --- a chunk, by an array of partial results -------------------------------------------------

Body summed_chunk(const Updates& u, const Expr& count, const Expr& c) {
  const DType dtype = u.r.program.buffers[u.step.buffer].type.dtype;
  const int64_t width = u.r.lanes ? u.r.lanes->most : 1;
  const int chosen = add_array(u.r.tile, {str("chosen", u.r.tile.arrays.size()), DType::i64,
                                          kChunk, Space::L1}),
            values = add_array(u.r.tile, {str("values", u.r.tile.arrays.size()), dtype,
                                          kChunk * width, Space::L1});
  const Expr left = u.r.index("left", kChunk + 1), l = u.r.index("e", kChunk);
  const auto put = [&](Body& body) {
    body.push_back(set(values, own_place(u.r, l), u.r.ids[u.step.value]));
  };
  const auto choose = [&](Body& body) {
    const int place = chosen_place(u, body, u.r.ids);
    body.push_back(set(chosen, l, place));
  };
  Statement all = update(u.step.op, u.step.buffer, u.step.index, u.step.limit, chosen, -1);
  all.kind = StatementKind::UpdateAll;
  all.array = values;
  all.left = left;
  all.width = static_cast<int>(width);
  all.from = 1;
  if (u.r.lanes) {
    all.from = u.r.lanes->stop - u.r.lanes->start;
    all.index = substitute(all.index, {{u.r.lanes->axis.name, u.r.lanes->start}});
  }
  return {let(left.name(), kChunk + 1, min(max(count - c * kChunk, 0), kChunk)),
          for_range(l.name(), kChunk, 0, left, element(u, c * kChunk + l, put, choose)), all};
}

// --- all updates -----------------------------------------------------------------------------

Body in_chunks(const Updates& u, const Expr& count) {
  const Expr first = min(count, kChunk), l = u.r.index("e", kChunk);
  const Expr chunks = ceil_div(count, kChunk), c = u.r.index("c", chunks);
  Body body = {for_range(l.name(), kChunk, 0, first,
                         element(u, l, [&](Body& body) { append(body, one(u)); }))};
  body.push_back(
      for_range(c.name(), chunks, 1, chunks,
                u.r.is_alone() ? found_chunk(u, count, c) : summed_chunk(u, count, c)));
  return body;
}

}  // namespace

Body update_row(RowTile& r, int number) {
  const Step& scatter = r.kernel.steps[number];
  const Updates u{r, scatter, wanted_by(r, {&scatter})};
  Body body = define_within(u.r, u.wanted, shared_scope(u.r), u.r.defined);
  const Expr count = inner_count(u.r.kernel, u.step);
  if (goes_in_chunks(u.r.kernel, u.step)) {
    append(body, in_chunks(u, count));
  } else {
    const Expr e = u.r.index("e", count);
    body.push_back(for_range(e.name(), count, 0, count,
                             element(u, e, [&](Body& body) { append(body, one(u)); })));
  }
  mark_kept(u.r, u.wanted);
  return body;
}

}  // namespace tiny_compile
