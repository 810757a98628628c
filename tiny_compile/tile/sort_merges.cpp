// How do the blocks of a GPU merge two sorted runs? Each makes a tile of the result. Two warps find how much of the
// left run goes before the tile and before the next one, 32 places at a time; the tile's words come to shared memory,
// where each finds how many of the other run go before it. Runs are words already, or places, whose keys are read
// there:
//
//   sort q[j0] for (j0: 5000) = argsort load x[j0] in 4096 from load p[j0]
// =>
//   if warp < 2 { for round < 3 { .. } ; cuts[warp] = low }         of the left run, what goes before the tile's ends
//   for r unrolled { k = r*256 + thread ; a: 5000 = .. ; room[k] = the word of load p[a] }
//   for r unrolled { before = how many of the other run's room[..] are below room[k] ; at: 5000 = .. ; store q[at] = .. }
#include <algorithm>
#include <functional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/sorted_row.h"
#include "tiny_compile/tile/sorts.h"
#include "tiny_compile/tile/vectors.h"
#include "tiny_compile/tile/warp_search.h"

namespace tiny_compile {
namespace {

// What is known while a merge is written. Numbers of places are data: what a function computes is defined at the end
// of its body.
struct Merge {
  RowTile& r;
  const SortedRow& row;
  Step runs;  // whose value is a place in the sorted runs
  int64_t count, tile,
      threads;           // elements of a row, of a tile of the result; threads of a block
  DType integer;         // that counts the row's elements
  SortWordArray room{};  // the tile's words
  int cuts = -1;         // of the left run, how many go before the tile begins, and ends
  // Of the pair in the row; how long its runs are; of the tile in the pair.
  Expr first{}, lefts{}, rights{}, begin{}, length{};

  int make(Body& body, Op op, std::vector<int> operands) const {
    return row.words.make(body, op, integer, std::move(operands));
  }
  int ask(Body& body, Op op, int a, int b) const {
    return row.words.make(body, op, DType::boolean, {a, b});
  }
  int number(int64_t value) const { return row.words.number(integer, value); }
  int data(Body& body, const Expr& value) const {
    return as_data(r.tile, body, value, integer);
  }
  int own(const char* name) const { return add_array(r.tile, {name, integer, 1}); }
  int read(Body& body, int array, const Expr& index = 0) const {
    return read_element(r.tile, body, array, index);
  }

  // The word that stands at a place of the runs, by its number in the row; under a name of that number.
  SortWord sorted(Body& body, const char* name, int number) const {
    const Expr at = Expr::index(name, count), place = Expr::index(str(name, "_place"), count);
    body.push_back(let_chosen(name, count, number));
    const int chosen = row.scalar_at(body, runs, at, row.step.rhs);
    if (r.kernel.scalars[row.step.rhs].dtype != DType::i64) return {chosen};
    body.push_back(let_chosen(place.name(), count, chosen));
    return row.word_at(body, place, place);
  }
};

// --- where the tile ends in both runs ---------------------------------------------------------------

// Of the left run those go before a place of the result which go before the word that would then be the last of the
// right.
Body find_cuts(const Merge& m, int64_t half) {
  const Expr warp = warp_of(m.r.tile);
  Body body;
  const int is_first = m.ask(body, Op::lt, m.data(body, warp), m.number(1)),
            begin = m.data(body, m.begin), end = m.data(body, m.begin + m.length),
            wanted = m.make(body, Op::where, {is_first, begin, end}),
            beyond = m.make(body, Op::sub, {wanted, m.data(body, m.rights)}),
            low = m.make(body, Op::maximum, {beyond, m.number(0)}),
            high = m.make(body, Op::minimum, {wanted, m.data(body, m.lefts)});
  const auto goes_before = [&](Body& each, int place) {
    const int mine = m.make(each, Op::add, {m.data(each, m.first), place}),
              all = m.make(each, Op::add, {m.data(each, m.first + m.lefts - 1), wanted}),
              theirs = m.make(each, Op::sub, {all, place});
    const SortWord left = m.sorted(each, "of_left", mine),
                   right = m.sorted(each, "of_right", theirs);
    return m.row.words.is_before(each, left, right);
  };
  const int found = first_that_fails(m.r.tile, body, m.integer, low, high, half, goes_before);
  Body told;
  const int cut = m.read(told, found);
  told.push_back(set(m.cuts, min(warp, 1), cut));
  body.push_back(if_less(lane_of_warp(), 1, std::move(told)));
  return {if_less(warp, 2, std::move(body)), barrier()};
}

// --- its words ---------------------------------------------------------------------------------------

// The thread's elements of the tile, where there are such.
Statement over_own(const Merge& m, const std::function<Body(const Expr&)>& each) {
  const int64_t own = m.tile / m.threads;
  const Expr k = Expr::index("r", own) * m.threads + thread_of(m.r.tile);
  return for_each("r", own, true, {if_less(k, m.length, each(k))});
}

// How many of the tile are the left run's.
int of_left(const Merge& m, Body& body) {
  return m.make(body, Op::sub, {m.read(body, m.cuts, 1), m.read(body, m.cuts, 0)});
}

// The tile's words of the left run, then those of the right.
Body bring_words(const Merge& m) {
  Body body;
  const int lefts = of_left(m, body), cut = m.read(body, m.cuts, 0),
            left = m.make(body, Op::add, {m.data(body, m.first), cut}),
            all = m.make(body, Op::sub, {m.data(body, m.first + m.lefts + m.begin), cut}),
            right = m.make(body, Op::sub, {all, lefts});
  body.push_back(over_own(m, [&](const Expr& k) {
    Body each;
    const int own = m.data(each, k), is_left = m.ask(each, Op::lt, own, lefts),
              from = m.make(each, Op::where, {is_left, left, right});
    const SortWord word = m.sorted(each, "from", m.make(each, Op::add, {from, own}));
    m.row.words.put(each, m.room, k, word);
    return each;
  }));
  body.push_back(barrier());
  return body;
}

// before[0] goes up to the first of the room's words below `high` that the word is not behind: by powers of two.
Statement look_for(const Merge& m, int before, const SortWord& word, int high) {
  const auto most = static_cast<int64_t>(power_of_two_from(m.tile));
  const int64_t steps = log2_of(most) + 1;
  Body body, there;
  const int so_far = m.read(body, before), s = m.data(body, Expr::index("s", steps)),
            power = m.make(body, Op::shift_right, {m.number(most), s}),
            next = m.make(body, Op::add, {so_far, power}),
            is_there = m.ask(body, Op::le, next, high);
  there.push_back(let_chosen("m", m.tile, m.make(there, Op::sub, {next, m.number(1)})));
  const SortWord other = m.row.words.read(there, m.room, Expr::index("m", m.tile));
  const int goes = m.row.words.is_before(there, other, word);
  there.push_back(set(before, 0, m.make(there, Op::where, {goes, next, so_far})));
  body.push_back(if_true(is_there, std::move(there)));
  return for_each("s", steps, false, std::move(body));
}

// Each word goes behind those of the other run that are before it, of which the room has some from `low` on.
Body place_words(const Merge& m) {
  const int before = m.own("before");
  Body body;
  const int lefts = of_left(m, body), length = m.data(body, m.length);
  body.push_back(over_own(m, [&](const Expr& k) {
    Body each;
    const int own = m.data(each, k), is_left = m.ask(each, Op::lt, own, lefts),
              high = m.make(each, Op::where, {is_left, length, lefts});
    const SortWord word = m.row.words.read(each, m.room, k);
    each.push_back(set(before, 0, m.make(each, Op::where, {is_left, lefts, m.number(0)})));
    const int has_others = m.ask(each, Op::lt, m.read(each, before), high);
    each.push_back(if_true(has_others, {look_for(m, before, word, high)}));
    const int ahead = m.make(each, Op::add, {m.data(each, m.first + m.begin), own}),
              both = m.make(each, Op::add, {ahead, m.read(each, before)});
    each.push_back(let_chosen("at", m.count, m.make(each, Op::sub, {both, lefts})));
    const int stored = m.row.words.stored(each, word, m.row.step.dtype);
    each.push_back(m.row.store_at(Expr::index("at", m.count), stored));
    return each;
  }));
  return body;
}

Merge planned(RowTile& r, const SortedRow& row) {
  const int own = schedule_of(r.kernel).each;
  const int64_t threads = merging_threads(own), count = row.count.constant();
  Merge m{r,
          row,
          row.step,
          count,
          own * threads,
          threads,
          count < 1 << 30 ? DType::i32 : DType::i64};
  m.runs.value = m.runs.mask = -1;
  r.tile.warps = static_cast<int>(threads / kLanes);
  m.room = row.words.array("room", m.tile, Space::Shared);
  m.cuts = add_array(r.tile, {"cuts", m.integer, 2, Space::Shared});
  return m;
}

}  // namespace

Tile lower_merge(const Program& program, const Kernel& kernel) {
  RowTile r = row_tile(program, kernel);
  const SortedRow row(r, kernel.steps[0]);
  Merge m = planned(r, row);
  const int64_t half = row.step.limit.constant() / 2,
                pair = std::min(row.step.limit.constant(), m.count),
                tiles = ceil_divide(pair, m.tile), pairs = ceil_divide(m.count, pair);
  const Expr rows = row_count(kernel);
  r.tile.grid = rows * (pairs * tiles);
  const Expr block = block_of(r.tile);
  Body& body = r.tile.body;
  const auto name = [&](Expr& symbol, const char* name, const Expr& extent, const Expr& value) {
    body.push_back(let(name, extent, value));
    symbol = Expr::index(name, extent);
  };
  Expr number;
  name(number, "row", rows, floor_div(block, pairs * tiles));
  append(body, unpack(kernel, row_axes(kernel), number, {}));
  name(m.first, "first", m.count, mod(floor_div(block, tiles), pairs) * pair);
  name(m.lefts, "lefts", half + 1, min(m.count - m.first, half));
  name(m.rights, "rights", half + 1, max(min(m.count - m.first - half, half), 0));
  name(m.begin, "begin", tiles * m.tile, mod(block, tiles) * m.tile);
  const Expr all = m.lefts + m.rights;
  name(m.length, "length", m.tile + 1, max(min(all - m.begin, m.tile), 0));
  append(body,
         define_within(r, wanted_by(r, {&row.keys, &m.runs}), shared_scope(r), r.defined));
  Body merged = find_cuts(m, half);
  append(merged, bring_words(m));
  append(merged, place_words(m));
  body.push_back(if_less(m.begin, all, std::move(merged)));
  return numbered(std::move(r.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
