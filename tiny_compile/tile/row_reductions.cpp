// How is a row reduced so that the bits depend on its length alone? Elements form chunks of 1024, whose
// tree ends in the chunk's first element; chunks' results are reduced by the same rule:
//
//   r0 = sum(j0: 4000) load x[..]
// =>
//   for c: 3 = 0 .. 3 { for l: 1024 = 0 .. 1024 vector { .. t[l] = $0 } ; tree sum t x 1024 ; part[c] = t[0] }
//   the last chunk: for l: 928 = .. ; tree sum t x 928 ; part[3] = t[0]
//   tree sum part x 4 ; r0 = part[0]
//
// Of more chunks than `part` has room for, each 1024 are reduced once they are there, into the next
// level's. What is exact goes in any order: integers and places one after the other.
#include "tiny_compile/tile/row_reductions.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/eighths.h"
#include "tiny_compile/loops/empty.h"
#include "tiny_compile/loops/strips.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/columns.h"
#include "tiny_compile/tile/row_alone.h"
#include "tiny_compile/tile/row_exact.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

// --- chunks' results -------------------------------------------------------------------------------

// The arrays of chunks' results, of each 1024 chunks' results, ..., for a row of so many chunks.
std::vector<int> part_arrays(RowReduction& x, int64_t chunks) {
  std::vector<int> levels;
  for (bool more = true; more; chunks = ceil_divide(chunks, kChunk)) {
    more = chunks > kMostParts;
    levels.push_back(scratch(x.rows, str("part", levels.size(), "_", x.type), x.type,
                             more ? kChunk : room_for_tree(chunks)));
  }
  return levels;
}

// The result of chunk number c, which stands first in an array.
Body put_part(RowReduction& x, const std::vector<int>& levels, size_t level, int from,
              const Expr& c) {
  RowTile& r = x.rows;
  Body body;
  const bool is_last = level + 1 == levels.size();
  const int value = read_back(r, body, from, own_place(r, 0));
  body.push_back(set(levels[level], own_place(r, is_last ? c : mod(c, kChunk)), value));
  if (is_last) return for_lanes(r, std::move(body));
  Body all = {tree_over(x.step.op == Op::sum_exp ? Op::sum : x.step.op, levels[level], kChunk)};
  append(all, put_part(x, levels, level + 1, levels[level], floor_div(c, kChunk)));
  body.push_back(if_less(kChunk - 2, mod(c, kChunk), std::move(all)));
  return body;
}

// The tree over all chunks' results: its own stands first in the last array.
Body reduce_parts(RowReduction& x, const std::vector<int>& levels, Expr count) {
  const Op op = x.step.op == Op::sum_exp ? Op::sum : x.step.op;
  Body body;
  for (size_t k = 0; k + 1 < levels.size(); k++) {
    const Expr rest = mod(count, kChunk);
    Body some = {tree_over(op, levels[k], rest)};
    append(some, put_part(x, levels, k + 1, levels[k], floor_div(count, kChunk)));
    if (!rest.is_constant(0)) body.push_back(if_less(0, rest, std::move(some)));
    count = ceil_div(count, kChunk);
  }
  body.push_back(tree_over(op, levels.back(), count));
  return body;
}

// --- a chunk ---------------------------------------------------------------------------------------

// What chunks come to and where.
struct Chunks {
  int values = -1;         // an array of a chunk's elements, whose first becomes its result
  std::vector<int> parts;  // of several chunks
  int chunk_most = -1;     // of sum_exp in lanes: the maximum of the chunk at hand
  int most = -1;           // of sum_exp: each chunk's maximum
  int largest = -1;        // and the largest of these so far
  int whole = -1;          // or the row's maximum, if that is known before
};

// Whether the tree may start from what is kept for later steps.
bool adds_kept(const RowReduction& x) {
  const auto keeps = x.rows.keeps.find(x.step.value);
  return keeps != x.rows.keeps.end() && x.rows.kept.count(x.step.value) == 0 &&
         x.step.op != Op::sum_exp &&
         compute_type(x.rows.kernel.scalars[x.step.value].dtype) == x.type;
}

// values[l] = exp(values[l] - m), their sum's tree, and m, the chunk's clamped maximum.
int add_exponentials(RowReduction& x, Body& body, int values, const Expr& count) {
  RowTile& r = x.rows;
  const int most =
      scratch(r, str("most_", x.type), x.type,
              count.is_constant(kChunk) ? kChunk / 8 : room_for_tree(count.bounds().high));
  const Axis lanes = {r.index("l", count.bounds().high).name(), count.bounds().high};
  const Expr l = lanes.symbol();
  if (count.is_constant(kChunk)) {
    append(body, halve_thrice(r, Op::max, x.type, values, 0, most));
  } else {
    Body copies;
    const int value = read_back(r, copies, values, l);
    copies.push_back(set(most, l, value));
    body.push_back(vector_loop(lanes, 0, count, std::move(copies)));
  }
  body.push_back(tree_over(Op::max, most, count.is_constant(kChunk) ? kChunk / 8 : count));
  const int largest = read_back(r, body, most, 0), m = clamped(r.tile, body, largest, x.type);
  Body each;
  const int value = read_back(r, each, values, l),
            below = computed(r.tile, each, Op::sub, x.type, {value, m});
  each.push_back(set(values, l, computed(r.tile, each, Op::exp, x.type, {below})));
  body.push_back(vector_loop(lanes, 0, count, std::move(each)));
  body.push_back(tree_over(Op::sum, values, count));
  return m;
}

// What a chunk's maximum is for: the row's, whose sum this is brought to.
Body put_most(RowReduction& x, const Chunks& chunks, int m, const Expr& c) {
  RowTile& r = x.rows;
  Body body;
  if (chunks.whole >= 0) {
    const int below = computed(r.tile, body, Op::sub, x.type, {m, chunks.whole}),
              factor = computed(r.tile, body, Op::exp, x.type, {below}),
              sum = read_back(r, body, chunks.values, 0);
    body.push_back(
        set(chunks.values, 0, computed(r.tile, body, Op::mul, x.type, {sum, factor})));
  } else if (chunks.most >= 0) {
    const Expr own = own_place(r, 0);
    body.push_back(set(chunks.most, own_place(r, c), m));
    const int so_far = read_back(r, body, chunks.largest, own);
    body.push_back(
        set(chunks.largest, own, computed(r.tile, body, Op::maximum, x.type, {so_far, m})));
  }
  return body;
}

// Chunk number c of lanes.
Body chunk_of_lanes(RowReduction& x, const Chunks& chunks, const Expr& base, const Expr& count,
                    const Expr& c) {
  RowTile& r = x.rows;
  const int most = chunks.chunk_most;
  Body body;
  if (most >= 0) {
    body = accumulate(x, Op::max, most, base, base + count);
    Body each;
    const int largest = read_back(r, each, most, own_place(r, 0)),
              m = clamped(r.tile, each, largest, x.type);
    each.push_back(set(most, own_place(r, 0), m));
    append(each, put_most(x, chunks, m, c));
    append(body, for_lanes(r, std::move(each)));
  }
  append(body, tree_of_column(x, chunks.values, most, base, count));
  if (!chunks.parts.empty()) append(body, put_part(x, chunks.parts, 0, chunks.values, c));
  return body;
}

// Whether a full chunk is added up by its eighths.
bool takes_eighths(const RowReduction& x) {
  const RowTile& r = x.rows;
  return schedule_of(r.kernel).unroll == 8 &&
         has_cheap_elements(r.kernel, x.step, x.wanted,
                            [&](int id) { return r.keeps.count(id) > 0; });
}

// Chunk number c, `count` elements from `base` on: its result is its part, or all there is.
Body chunk(RowReduction& x, const Chunks& chunks, const Expr& base, const Expr& count,
           const Expr& c) {
  RowTile& r = x.rows;
  if (r.lanes) return chunk_of_lanes(x, chunks, base, count, c);
  const int t = chunks.values;
  const bool is_full = count.is_constant(kChunk);
  Body body;
  if (x.step.op == Op::sum_exp) {
    body = fill(x, t, base, count);
    const int m = add_exponentials(x, body, t, count);
    append(body, put_most(x, chunks, m, c));
  } else if (is_full && takes_eighths(x)) {
    body = fill_eighths(x, t, base);
    body.push_back(tree_over(x.step.op, t, kChunk / 8));
  } else if (is_full && adds_kept(x)) {
    body = fill(x, -1, base, count);
    append(body, halve_thrice(r, x.step.op, x.type, r.keeps.at(x.step.value), base, t));
    body.push_back(tree_over(x.step.op, t, kChunk / 8));
  } else {
    body = fill(x, t, base, count);
    body.push_back(tree_over(x.step.op, t, count));
  }
  if (!chunks.parts.empty()) append(body, put_part(x, chunks.parts, 0, t, c));
  return body;
}

// --- a row -----------------------------------------------------------------------------------------

// The loads of a row that the next row will repeat: where `base` of that one is. Asked for by the last
// step that reads the row from memory, while what follows works in the caches.
void find_following(RowReduction& x, Body& body, int number) {
  const Kernel& kernel = x.rows.kernel;
  const std::vector<Step>& steps = kernel.steps;
  int last = -1, passes = 0;
  for (size_t s = 0; s < steps.size(); s++) {
    if (steps[s].inner != x.step.inner) continue;
    passes++;
    if (steps[s].kind == StepKind::Reduce) last = static_cast<int>(s);
  }
  if (last != number || passes < 2 || x.count.bounds().low < kChunk || kernel.rows == 0 ||
      x.step.inner.size() != 1)
    return;
  const Axis &across = kernel.axes[static_cast<size_t>(kernel.rows) - 1],
             &along = kernel.axes[x.step.inner[0]];
  const Expr next = x.rows.index(str("row_after", number), across.extent);
  for (int id : x.wanted) {
    const Scalar& load = kernel.scalars[id];
    if (!is_plain(load) || coefficient(load.index, along.symbol()) != 1 ||
        !depends_on(load.index, across.name))
      continue;
    x.following.push_back(
        {load.buffer, substitute(load.index, {{across.name, next}, {along.name, x.base()}})});
  }
  if (!x.following.empty())
    body.push_back(
        let(next.name(), across.extent, min(across.symbol() + 1, across.extent - 1)));
}

// Where some rows end early (loops/ends_of_rows.h), how long this one is: a number that all its steps share.
void count_row(RowReduction& x, Body& body) {
  const auto end = x.step.inner.empty() ? x.rows.ends.end() : x.rows.ends.find(x.step.inner[0]);
  if (end == x.rows.ends.end()) return;
  const auto [counted, is_first] = x.rows.counts.try_emplace(
      end->first, x.rows.index(str("count", x.rows.counts.size()), x.count + 1));
  if (is_first) body.push_back(let(counted->second.name(), x.count + 1, end->second));
  x.count = counted->second, x.end = end->second;
}

Chunks arrays_for(RowReduction& x, int64_t count) {
  const int64_t chunks = most_chunks(x.count);
  Chunks all;
  if (chunks > 1) all.parts = part_arrays(x, chunks);
  if (x.rows.lanes)
    all.values = stack_for(x);
  else
    all.values =
        scratch(x.rows, str("t_", x.type), x.type, room_for_tree(std::min(count, kChunk)));
  if (x.rows.lanes && x.step.op == Op::sum_exp)
    all.chunk_most = scratch(x.rows, str("most_", x.type), x.type, 1);
  if (x.step.op != Op::sum_exp || all.parts.size() != 1) return all;
  all.most = scratch(x.rows, str("mosts_", x.type), x.type, room_for_tree(chunks));
  all.largest = scratch(x.rows, str("largest_", x.type), x.type, 1);
  return all;
}

// Chunk sums, each against its own maximum, brought to the largest of these.
Body brought_to_largest(RowReduction& x, const Chunks& all, const Expr& chunks) {
  RowTile& r = x.rows;
  Body body, each;
  const int largest = read_back(r, r.lanes ? each : body, all.largest, own_place(r, 0));
  const Axis over = {r.index("c", chunks.bounds().high).name(), chunks.bounds().high};
  const Expr c = own_place(r, over.symbol());
  const int part = read_back(r, each, all.parts[0], c), most = read_back(r, each, all.most, c),
            below = computed(r.tile, each, Op::sub, x.type, {most, largest}),
            factor = computed(r.tile, each, Op::exp, x.type, {below});
  each.push_back(set(all.parts[0], c, computed(r.tile, each, Op::mul, x.type, {part, factor})));
  body.push_back(
      r.lanes ? for_range(over.name, over.extent, 0, chunks, for_lanes(r, std::move(each)))
              : vector_loop(over, 0, chunks, std::move(each)));
  return body;
}

// All chunks, of which `full` are whole; the array whose first element is the result.
int reduce_chunks(RowReduction& x, Body& body, const Chunks& all, const Expr& count,
                  const Expr& full, const Expr& rest, const Expr& chunks) {
  RowTile& r = x.rows;
  if (all.largest >= 0) {
    const int least = add_constant(r.tile, identity(Op::max, x.type));
    append(body, for_lanes(r, {set(all.largest, own_place(r, 0), least)}));
  }
  const int64_t most = full.bounds().high;
  if (full.is_constant(1)) {
    append(body, chunk(x, all, 0, kChunk, 0));
  } else if (most > 0) {
    const Expr c = r.index("c", most);
    body.push_back(for_range(c.name(), most, 0, full, chunk(x, all, c * kChunk, kChunk, c)));
  }
  if (rest.is_constant() && !rest.is_constant(0))
    append(body, chunk(x, all, full * kChunk, rest, full));
  if (!rest.is_constant())
    body.push_back(if_less(0, rest, chunk(x, all, full * kChunk, rest, full)));
  if (all.parts.empty()) return all.values;
  Body last;
  if (all.most >= 0) last = brought_to_largest(x, all, chunks);
  append(last, r.lanes ? tree_of_parts(x, all.values, all.parts[0], chunks)
                       : reduce_parts(x, all.parts, chunks));
  if (count.bounds().low > 0)
    append(body, std::move(last));
  else
    body.push_back(if_less(0, count, std::move(last)));
  return r.lanes ? all.values : all.parts.back();
}

int reduce_known(RowReduction& x, Body& body, const Chunks& all) {
  const int64_t count = x.count.constant();
  return reduce_chunks(x, body, all, count, count / kChunk, count % kChunk,
                       ceil_divide(count, kChunk));
}

// A row whose length is a size: its chunks are counted where it runs.
int reduce_sized(RowReduction& x, Body& body, const Chunks& all) {
  const Expr& count = x.count;
  int result = all.values;
  if (count.bounds().high > kChunk) {
    result = reduce_chunks(x, body, all, count, floor_div(count, kChunk), mod(count, kChunk),
                           ceil_div(count, kChunk));
  } else {
    Statement some = if_less(0, count, chunk(x, all, 0, count, 0));
    if (has_full_chunks(count, x.end.has_value()))
      append(body, {if_less(kChunk - 1, count, chunk(x, all, 0, kChunk, 0)),
                    otherwise({std::move(some)})});
    else
      body.push_back(std::move(some));
  }
  const bool has_none = x.step.op == Op::max || x.step.op == Op::min;
  if (x.end || count.bounds().low > 0 || has_none) return result;
  const int nothing = add_constant(x.rows.tile, of_nothing(x.step.op, x.type));
  RowTile& r = x.rows;
  body.push_back(if_less(count, 1, for_lanes(r, {set(result, own_place(r, 0), nothing)})));
  return result;
}

int reduce_tree(RowReduction& x, Body& body) {
  if (x.rows.is_alone()) return tree_alone(x, body);
  Chunks all = arrays_for(x, x.count.bounds().high);
  Step step = x.step;
  if (step.op == Op::sum_exp && all.parts.size() > 1) {  // more maxima than there is room for
    step.op = Op::max;
    RowReduction most{x.rows, step, x.type, x.count, x.wanted, x.end};
    const int array = reduce_tree(most, body), value = read_back(x.rows, body, array, 0);
    all.whole = clamped(x.rows.tile, body, value, x.type);
  }
  return x.count.is_constant() ? reduce_known(x, body, all) : reduce_sized(x, body, all);
}

// --- in any order ----------------------------------------------------------------------------------

int reduce_plainly(RowReduction& x, Body& body) {
  const int all = scratch(x.rows, str("all_", x.type), x.type, 1);
  append(body, accumulate(x, x.step.op, all, 0, x.count));
  return all;
}

// A zero maximum is +0.
int without_minus_zero(const RowReduction& x, Body& each, int value) {
  const bool is_extreme = x.step.op == Op::max || x.step.op == Op::min;
  if (!is_float(x.type) || !is_extreme) return value;
  const int zero = add_constant(x.rows.tile, Literal::of(x.type, 0));
  return computed(x.rows.tile, each, Op::add, x.type, {value, zero});
}

// A lane's register of this value, in an array over them.
void make_own_register(const RowReduction& x, int number, Body& each, int value) {
  RowTile& r = x.rows;
  value = without_minus_zero(x, each, value);
  const int array = scratch(r, str("r", number, "_of_row"), x.step.dtype, 1);
  each.push_back(set(array, own_place(r, 0), as_added(r, each, x.step.dtype, value)));
  r.registers[number] = array;
}

// Whether it goes by the contract's tree: what is exact need not, but a tree takes several elements at once.
bool goes_by_tree(const RowReduction& x) {
  const bool is_lone = (!x.rows.lanes && !x.rows.is_alone()) || takes_eights(x);
  return is_float(x.type) && (is_lone || !is_exact(x.step.op, x.type));
}

}  // namespace

Body make_register(const RowReduction& x, int number, int array) {
  RowTile& r = x.rows;
  const int own = register_of(r.kernel, number);
  if (own < 0) return {};
  const DType dtype = x.step.dtype;
  Body body;
  if (r.lanes) {
    const int value = read_back(r, body, array, own_place(r, 0));
    make_own_register(x, number, body, value);
    return for_lanes(r, std::move(body));
  }
  const int own_scalar = r.ids[own];
  if (r.tile.arrays[array].dtype == dtype) return {define_from(own_scalar, array, 0)};
  const int result = scratch(r, str("r", number, "_of_row"), dtype, 1);
  const int value = read_back(r, body, array, 0);
  body.push_back(set(result, 0, computed(r.tile, body, Op::cast, dtype, {value})));
  body.push_back(define_from(own_scalar, result, 0));
  return body;
}

Body reduce_row(RowTile& r, int number) {
  const Step& step = r.kernel.steps[number];
  RowReduction x{r, step};
  x.type = accumulator(step.op, r.kernel.scalars[step.value].dtype);
  x.count = inner_count(r.kernel, step);
  x.wanted = wanted_by(r, {&step});
  Body body = define_within(r, x.wanted, shared_scope(r), r.defined);
  if (has_few_elements(x)) {
    int array = -1;
    append(body, reduce_few(x, [&](Body& each, int result) {
             if (r.lanes) return make_own_register(x, number, each, result);
             if (r.is_alone()) result = without_minus_zero(x, each, result);
             const DType dtype = r.tile.kernel.scalars[result].dtype;
             array = scratch(r, str("all_", dtype), dtype, 1);
             each.push_back(set(array, 0, result));
           }));
    if (!r.lanes) append(body, make_register(x, number, array));
    return body;
  }
  count_row(x, body);
  if (is_float(x.type) && !is_arg(step) && !r.lanes && !r.is_alone())
    find_following(x, body, number);
  const int array = is_arg(step)      ? find_place(x, body)
                    : goes_by_tree(x) ? reduce_tree(x, body)
                                      : reduce_plainly(x, body);
  append(body, make_register(x, number, array));
  mark_kept(r, x.wanted);
  return body;
}

}  // namespace tiny_compile
