// Which updates go to a block's run? Where nobody has sorted them, every block reads the whole index; what is not its
// own is most of it:
//
//   for tile < 4 { words[k] = target and number of each of a thread's updates, or -1;  counts[warp] = votes ..   barrier
//               listed[behind all that were found before] = words[k]   barrier
//               if the list may not hold another tile {
//                 for each target t: begins[t] = how many of the list are below; sorted[..] = those of t, ascending }
//               barrier   if .. { the run's points }   barrier }
//
// Where an earlier kernel has sorted them by target (order_updates.h), what lies between two places of the order is the
// block's list; where two neighbours' targets differ, the second one's updates begin.
#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/tile/run_tile.h"
#include "tiny_compile/tile/warp_search.h"

namespace tiny_compile {
namespace {

constexpr int kThreads = RunShape::threads, kWarps = kThreads / kLanes;
constexpr int64_t kMostEach = 8;  // updates of a thread that are looked at together

// --- a list that is found --------------------------------------------------------------------

// The list of a block, tile by tile, and the arrays that it takes.
struct FoundList {
  RunTile& r;
  // Updates of a thread, and of a tile; how many the list has room for; bits of an update's number.
  const int64_t each = std::min<int64_t>(kMostEach, ceil_divide(r.shape.updates, kThreads));
  const int64_t tile = each * kThreads, tiles = ceil_divide(r.shape.updates, tile);
  const int64_t capacity = tiles == 1 ? tile : tile * 3 / 2;
  const int bits = log2_of(power_of_two_from(r.shape.updates));
  const int listed = r.shared("listed", DType::i32, capacity),
            sorted = r.sorted = r.shared("sorted", DType::i32, capacity),
            counts = r.shared("counts", DType::i32, kWarps);
  // Of a thread's updates, and its warp's.
  const int places = r.own("places", DType::i64, each),
            words = r.own("words", DType::i32, each), alike = r.own("alike", DType::i32, each),
            found = r.own("found", DType::i32);
  // In the list so far; places of it.
  const int waiting = r.own("waiting", DType::i32), at = r.own("place", DType::i32);
};

// A thread a target, and one for where the last one ends.
Body sort_list(const FoundList& f) {
  const int64_t turns = ceil_divide(f.r.most + 1, kThreads);
  const Expr q = turns == 1 ? Expr(0) : f.r.index("q", turns), at = q * kThreads + f.r.thread;
  Body body, count, place, put;
  const Expr t = f.r.name(body, "t", f.r.most + 1, min(at, f.r.most)),
             all = f.r.chosen(body, "all", f.capacity + 1, f.r.read(body, f.waiting)),
             n = f.r.index("n", f.capacity);
  const int own = f.r.data(body, t),
            bound = f.r.i32(body, Op::shift_left, own, f.r.number(f.bits));
  body.push_back(set(f.at, 0, f.r.number(0)));
  const int is_below = f.r.ask(count, Op::lt, f.r.read(count, f.listed, n), bound);
  count.push_back(set(f.at, 0,
                      f.r.i32(count, Op::add, f.r.read(count, f.at),
                              f.r.make(count, Op::cast, DType::i32, {is_below}))));
  body.push_back(for_range(n.name(), f.capacity, 0, all, std::move(count)));
  body.push_back(set(f.r.begins, t, f.r.read(body, f.at)));
  const int word = f.r.read(place, f.listed, n),
            is_own = f.r.ask(place, Op::eq,
                             f.r.i32(place, Op::shift_right, word, f.r.number(f.bits)), own);
  const int next = f.r.read(put, f.at);
  const Expr to = f.r.chosen(put, "to", f.capacity, next);
  put.push_back(
      set(f.r.sorted, to,
          f.r.i32(put, Op::bitwise_and, word, f.r.number((int64_t{1} << f.bits) - 1))));
  put.push_back(set(f.at, 0, f.r.i32(put, Op::add, next, f.r.number(1))));
  place.push_back(if_true(is_own, std::move(put)));
  body.push_back(for_range(n.name(), f.capacity, 0, all, std::move(place)));
  body = {if_less(at, f.r.targets + 1, std::move(body))};
  if (turns == 1) return body;
  return {for_each(q.name(), turns, false, std::move(body))};
}

// Where the list may not hold another tile, or there is none.
Body empty_full_list(const FoundList& f, const Expr& q, const std::function<Body()>& over_run) {
  Body body;
  const int is_full = f.r.ask(body, Op::gt, f.r.read(body, f.waiting),
                              f.r.number(f.capacity - f.tile)),
            is_last = f.r.ask(body, Op::ge, f.r.data(body, q), f.r.number(f.tiles - 1)),
            empties = f.r.ask(body, Op::bitwise_or, is_full, is_last);
  body.push_back(if_true(empties, sort_list(f)));
  body.push_back(barrier());
  Body emptied = over_run();
  emptied.push_back(set(f.waiting, 0, f.r.number(0)));
  emptied.push_back(set(f.r.again, 0, f.r.number(1, DType::boolean)));
  body.push_back(if_true(empties, std::move(emptied)));
  body.push_back(barrier());
  return body;
}

bool is_whole(const FoundList& f) { return f.r.shape.updates % f.tile == 0; }

// Whether update number `at` is there, too.
int if_there(const FoundList& f, Body& body, const Expr& at, int holds) {
  if (is_whole(f)) return holds;
  const int is_there = f.r.ask(body, Op::lt, f.r.data(body, at, DType::i64),
                               f.r.number(f.r.shape.updates, DType::i64));
  return f.r.ask(body, Op::bitwise_and, holds, is_there);
}

int votes(RunTile& r, Body& body, int holds, bool below = false) {
  const int id = add_votes(r.p.tile, holds, below);
  body.push_back(define(id));
  return id;
}

// words[k]: target and number of each of the thread's updates in the tile, -1 where that is not the block's; alike[k]:
// of how many lanes it is; counts[w]: how many warp w has found.
Body find(const FoundList& f, const Expr& from) {
  const Expr k = f.r.index("k", f.each),
             at = from + warp_of(f.r.p.tile) * (kLanes * f.each) + k * kLanes + lane_of_warp(),
             last = f.r.shape.updates - 1;
  Body look, told, each, tell;
  const Expr update = f.r.name(look, "u", f.r.shape.updates, is_whole(f) ? at : min(at, last));
  look.push_back(set(f.places, k, f.r.scalar_at(look, f.r.scatter.rhs, update)));
  const int wrong = f.r.read(told, f.places, k);
  told.push_back(f.r.tell(if_there(f, told, at, f.r.is_stray(told, wrong)), wrong));
  const int place = f.r.read(each, f.places, k),
            target = f.r.make(each, Op::sub, DType::i64,
                              {place, f.r.data(each, f.r.lowest, DType::i64)}),
            from_there = f.r.make(each, Op::cast, DType::u64, {target}),  // below 0: beyond all
      is_own = f.r.ask(each, Op::lt, from_there, f.r.data(each, f.r.targets, DType::u64)),
            mine = if_there(f, each, at, is_own), all = votes(f.r, each, mine),
            high = f.r.i32(each, Op::shift_left, f.r.make(each, Op::cast, DType::i32, {target}),
                           f.r.number(f.bits)),
            word = f.r.i32(each, Op::bitwise_or, high, f.r.data(each, at));
  each.push_back(
      set(f.words, k, f.r.make(each, Op::where, DType::i32, {mine, word, f.r.number(-1)})));
  each.push_back(set(f.alike, k, all));
  each.push_back(set(f.found, 0, f.r.i32(each, Op::add, f.r.read(each, f.found), all)));
  const auto over = [&](Body body) {
    return for_each(k.name(), f.each, true, std::move(body));
  };
  const int found = f.r.read(tell, f.found);
  tell.push_back(set(f.counts, warp_of(f.r.p.tile), found));
  return {over(std::move(look)),
          if_less(block_of(f.r.p.tile), 1, {over(std::move(told))}),
          set(f.found, 0, f.r.number(0)),
          over(std::move(each)),
          if_less(lane_of_warp(), 1, std::move(tell)),
          barrier()};
}

// Behind what warps below have found, and what was there.
Body list_found(const FoundList& f) {
  const Expr w = f.r.index("w", kWarps), k = f.r.index("k", f.each);
  Body body, sum, each, there;
  body.push_back(set(f.at, 0, f.r.read(body, f.waiting)));
  const int others = f.r.read(sum, f.counts, w),
            is_before =
                f.r.ask(sum, Op::lt, f.r.data(sum, w), f.r.data(sum, warp_of(f.r.p.tile))),
            below = f.r.make(sum, Op::where, DType::i32, {is_before, others, f.r.number(0)});
  sum.push_back(set(f.at, 0, f.r.i32(sum, Op::add, f.r.read(sum, f.at), below)));
  sum.push_back(set(f.waiting, 0, f.r.i32(sum, Op::add, f.r.read(sum, f.waiting), others)));
  body.push_back(for_each(w.name(), kWarps, true, std::move(sum)));
  const int word = f.r.read(each, f.words, k), begin = f.r.read(each, f.at),
            mine = f.r.ask(each, Op::ge, word, f.r.number(0)),
            ahead = votes(f.r, each, mine, true), all = f.r.read(each, f.alike, k);
  const Expr n = f.r.chosen(there, "n", f.capacity, f.r.i32(there, Op::add, begin, ahead));
  there.push_back(set(f.listed, n, word));
  each.push_back(if_true(mine, std::move(there)));
  each.push_back(set(f.at, 0, f.r.i32(each, Op::add, begin, all)));
  body.push_back(for_each(k.name(), f.each, true, std::move(each)));
  return body;
}

Body list_tile(const FoundList& f, const Expr& from) {
  Body body = find(f, from);
  append(body, list_found(f));
  body.push_back(barrier());
  return body;
}

Body find_all(const FoundList& f, const std::function<Body()>& over_run) {
  Body body = {set(f.waiting, 0, f.r.number(0))};
  if (f.tiles == 1) {
    append(body, list_tile(f, 0));
    append(body, sort_list(f));
    body.push_back(barrier());
    append(body, over_run());
    return body;
  }
  f.r.again = f.r.own("again", DType::boolean);
  body.push_back(set(f.r.again, 0, f.r.number(0, DType::boolean)));
  const Expr q = f.r.index("tile", f.tiles);
  Body each = list_tile(f, q * f.tile);
  append(each, empty_full_list(f, q, over_run));
  body.push_back(for_each(q.name(), f.tiles, false, std::move(each)));
  return body;
}

// --- a list that an earlier kernel has ordered -----------------------------------------------

// Where that goes; the limit for nowhere.
int target_of(RunTile& r, Body& body, const Expr& n) {
  const int place = r.scalar_at(body, r.scatter.rhs, r.ordered(body, n));
  return r.make(body, Op::where, DType::i64,
                {r.is_stray(body, place), r.number(r.shape.targets, DType::i64), place});
}

// ends[0]: the first number that goes to the run's targets or behind them; ends[1]: behind them.
Body find_ends(RunTile& r, int ends) {
  const Expr warp = warp_of(r.p.tile);
  Body body, told;
  const int is_first = r.ask(body, Op::lt, r.data(body, warp), r.number(1)),
            bound = r.make(body, Op::where, DType::i64,
                           {is_first, r.data(body, r.lowest, DType::i64),
                            r.data(body, r.lowest + r.targets, DType::i64)}),
            found = first_that_fails(r.p.tile, body, DType::i32, r.number(0),
                                     r.number(r.shape.updates), r.shape.updates,
                                     [&](Body&each, int at) {
                                       const Expr n = r.chosen(each, "n", r.shape.updates, at);
                                       return r.ask(each, Op::lt, target_of(r, each, n), bound);
                                     });
  const int end = r.read(told, found);
  told.push_back(set(ends, min(warp, 1), end));
  body.push_back(if_less(lane_of_warp(), 1, std::move(told)));
  return {if_less(warp, 2, std::move(body)), barrier()};
}

// Of the targets behind the one before, up to that of number n.
Body begin_targets(RunTile& r, const Expr& n, const Expr& from, const Expr& to) {
  const int64_t last = r.shape.updates - 1;
  Body body, left, right, set_one;
  const int lowest = r.data(body, r.lowest, DType::i64), none = r.number(-1, DType::i64);
  const auto relative = [&](Body& each, const char* what, const Expr& at) {
    const Expr here = r.name(each, what, r.shape.updates, at);
    return r.make(each, Op::sub, DType::i64, {target_of(r, each, here), lowest});
  };
  const int before = r.own("before", DType::i64), here = r.own("here", DType::i64);
  body.push_back(set(before, 0, none));
  left.push_back(set(before, 0, relative(left, "left", min(max(n - 1, 0), last))));
  body.push_back(if_less(from, n, std::move(left)));
  body.push_back(set(here, 0, r.data(body, r.targets, DType::i64)));
  right.push_back(set(here, 0, relative(right, "right", min(n, last))));
  body.push_back(if_less(n, to, std::move(right)));
  const int one = r.number(1, DType::i64);
  const Expr low = r.chosen(body, "lower", r.most + 2,
                            r.make(body, Op::add, DType::i64, {r.read(body, before), one})),
             high = r.chosen(body, "upper", r.most + 2,
                             r.make(body, Op::add, DType::i64, {r.read(body, here), one})),
             t = r.index("t", r.most + 1);
  set_one.push_back(set(r.begins, t, r.data(set_one, n)));
  body.push_back(
      for_range(t.name(), r.most + 1, low, min(high, r.most + 1), std::move(set_one)));
  return body;
}

}  // namespace

Body over_found(RunTile& run, const std::function<Body()>& over_run) {
  return find_all({run}, over_run);
}

// A list from number `from` to `to` of the order; what goes nowhere stands last in it.
Body ordered_list(RunTile& r) {
  const int ends = r.shared("ends", DType::i32, 2);
  Body body, stray, begin;
  const int place =
      r.scalar_at(stray, r.scatter.rhs, r.ordered(stray, Expr(r.shape.updates - 1)));
  stray.push_back(r.tell(r.is_stray(stray, place), place));
  body.push_back(if_less(block_of(r.p.tile) * kThreads + r.thread, 1, std::move(stray)));
  append(body, find_ends(r, ends));
  const Expr from = r.chosen(body, "from", r.shape.updates + 1, r.read(body, ends, 0)),
             to = r.chosen(body, "to", r.shape.updates + 1, r.read(body, ends, 1)),
             q = r.index("q", ceil_divide(r.shape.updates + 1, kThreads)),
             n = from + q * kThreads + r.thread;
  begin.push_back(if_less(n, to + 1, begin_targets(r, n, from, to)));
  body.push_back(for_range(q.name(), q.bounds().high + 1, 0,
                           floor_div(max(to - from, 0), kThreads) + 1, std::move(begin)));
  body.push_back(barrier());
  return body;
}

}  // namespace tiny_compile
