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

constexpr int kLanes = 32, kThreads = RunShape::threads, kWarps = kThreads / kLanes;
constexpr int64_t kMostEach = 8;  // updates of a thread that are looked at together

class FoundList {
 public:
  explicit FoundList(RunTile& run)
      : r_(run),
        each_(std::min<int64_t>(kMostEach, ceil_divide(run.shape.updates, kThreads))),
        bits_(log2_of(power_of_two_from(run.shape.updates))) {}

  Body over(const std::function<Body()>& over_run) {
    const int64_t tile = each_ * kThreads, tiles = ceil_divide(r_.shape.updates, tile);
    capacity_ = tiles == 1 ? tile : tile * 3 / 2;
    listed_ = r_.shared("listed", DType::i32, capacity_);
    r_.sorted = r_.shared("sorted", DType::i32, capacity_);
    counts_ = r_.shared("counts", DType::i32, kWarps);
    places_ = r_.own("places", DType::i64, each_);
    words_ = r_.own("words", DType::i32, each_);
    alike_ = r_.own("alike", DType::i32, each_);
    found_ = r_.own("found", DType::i32);
    waiting_ = r_.own("waiting", DType::i32);
    at_ = r_.own("place", DType::i32);
    Body body = {set(waiting_, 0, r_.number(0))};
    if (tiles == 1) {
      append(body, list_tile(0));
      append(body, sort_list());
      body.push_back(barrier());
      append(body, over_run());
      return body;
    }
    r_.again = r_.own("again", DType::boolean);
    body.push_back(set(r_.again, 0, r_.number(0, DType::boolean)));
    const Expr q = r_.index("tile", tiles);
    Body each = list_tile(q * tile);
    append(each, empty_full_list(q, tiles, over_run));
    body.push_back(for_each(q.name(), tiles, false, std::move(each)));
    return body;
  }

 private:
  // Where the list may not hold another tile, or there is none.
  Body empty_full_list(const Expr& q, int64_t tiles, const std::function<Body()>& over_run) {
    Body body;
    const int is_full = r_.ask(body, Op::gt, r_.read(body, waiting_),
                               r_.number(capacity_ - each_ * kThreads)),
              is_last = r_.ask(body, Op::ge, r_.data(body, q), r_.number(tiles - 1)),
              empties = r_.ask(body, Op::bitwise_or, is_full, is_last);
    body.push_back(if_true(empties, sort_list()));
    body.push_back(barrier());
    Body emptied = over_run();
    emptied.push_back(set(waiting_, 0, r_.number(0)));
    emptied.push_back(set(r_.again, 0, r_.number(1, DType::boolean)));
    body.push_back(if_true(empties, std::move(emptied)));
    body.push_back(barrier());
    return body;
  }

  Body list_tile(const Expr& from) {
    Body body = find(from);
    append(body, list_found());
    body.push_back(barrier());
    return body;
  }

  bool is_whole() const { return r_.shape.updates % (each_ * kThreads) == 0; }

  // Whether update number `at` is there, too.
  int if_there(Body& body, const Expr& at, int holds) {
    if (is_whole()) return holds;
    const int is_there = r_.ask(body, Op::lt, r_.data(body, at, DType::i64),
                                r_.number(r_.shape.updates, DType::i64));
    return r_.ask(body, Op::bitwise_and, holds, is_there);
  }

  // words[k]: target and number of each of the thread's updates in the tile, -1 where that is not the block's; alike[k]:
  // of how many lanes it is; counts[w]: how many warp w has found.
  Body find(const Expr& from) {
    const Expr k = r_.index("k", each_),
               at = from + warp_of(r_.p.tile) * (kLanes * each_) + k * kLanes + lane_of_warp(),
               last = r_.shape.updates - 1;
    Body look, told, each, tell;
    const Expr update = r_.name(look, "u", r_.shape.updates, is_whole() ? at : min(at, last));
    look.push_back(set(places_, k, r_.scalar_at(look, r_.scatter.rhs, update)));
    const int wrong = r_.read(told, places_, k);
    told.push_back(r_.tell(if_there(told, at, r_.is_stray(told, wrong)), wrong));
    const int place = r_.read(each, places_, k),
              target = r_.make(each, Op::sub, DType::i64,
                               {place, r_.data(each, r_.lowest, DType::i64)}),
              from_there =
                  r_.make(each, Op::cast, DType::u64, {target}),  // below 0: beyond all
        is_own = r_.ask(each, Op::lt, from_there, r_.data(each, r_.targets, DType::u64)),
              mine = if_there(each, at, is_own), all = votes(each, mine),
              high = r_.i32(each, Op::shift_left, r_.make(each, Op::cast, DType::i32, {target}),
                            r_.number(bits_)),
              word = r_.i32(each, Op::bitwise_or, high, r_.data(each, at));
    each.push_back(
        set(words_, k, r_.make(each, Op::where, DType::i32, {mine, word, r_.number(-1)})));
    each.push_back(set(alike_, k, all));
    each.push_back(set(found_, 0, r_.i32(each, Op::add, r_.read(each, found_), all)));
    const auto over = [&](Body body) {
      return for_each(k.name(), each_, true, std::move(body));
    };
    const int found = r_.read(tell, found_);
    tell.push_back(set(counts_, warp_of(r_.p.tile), found));
    return {over(std::move(look)),
            if_less(block_of(r_.p.tile), 1, {over(std::move(told))}),
            set(found_, 0, r_.number(0)),
            over(std::move(each)),
            if_less(lane_of_warp(), 1, std::move(tell)),
            barrier()};
  }

  int votes(Body& body, int holds, bool below = false) {
    const int id = add_votes(r_.p.tile, holds, below);
    body.push_back(define(id));
    return id;
  }

  // Behind what warps below have found, and what was there.
  Body list_found() {
    const Expr w = r_.index("w", kWarps), k = r_.index("k", each_);
    Body body, sum, each, there;
    body.push_back(set(at_, 0, r_.read(body, waiting_)));
    const int others = r_.read(sum, counts_, w),
              is_before =
                  r_.ask(sum, Op::lt, r_.data(sum, w), r_.data(sum, warp_of(r_.p.tile))),
              below = r_.make(sum, Op::where, DType::i32, {is_before, others, r_.number(0)});
    sum.push_back(set(at_, 0, r_.i32(sum, Op::add, r_.read(sum, at_), below)));
    sum.push_back(set(waiting_, 0, r_.i32(sum, Op::add, r_.read(sum, waiting_), others)));
    body.push_back(for_each(w.name(), kWarps, true, std::move(sum)));
    const int word = r_.read(each, words_, k), begin = r_.read(each, at_),
              mine = r_.ask(each, Op::ge, word, r_.number(0)), ahead = votes(each, mine, true),
              all = r_.read(each, alike_, k);
    const Expr n = r_.chosen(there, "n", capacity_, r_.i32(there, Op::add, begin, ahead));
    there.push_back(set(listed_, n, word));
    each.push_back(if_true(mine, std::move(there)));
    each.push_back(set(at_, 0, r_.i32(each, Op::add, begin, all)));
    body.push_back(for_each(k.name(), each_, true, std::move(each)));
    return body;
  }

  // A thread a target, and one for where the last one ends.
  Body sort_list() {
    const int64_t turns = ceil_divide(r_.most + 1, kThreads);
    const Expr q = turns == 1 ? Expr(0) : r_.index("q", turns), at = q * kThreads + r_.thread;
    Body body, count, place, put;
    const Expr t = r_.name(body, "t", r_.most + 1, min(at, r_.most)),
               all = r_.chosen(body, "all", capacity_ + 1, r_.read(body, waiting_)),
               n = r_.index("n", capacity_);
    const int own = r_.data(body, t),
              bound = r_.i32(body, Op::shift_left, own, r_.number(bits_));
    body.push_back(set(at_, 0, r_.number(0)));
    const int is_below = r_.ask(count, Op::lt, r_.read(count, listed_, n), bound);
    count.push_back(set(at_, 0,
                        r_.i32(count, Op::add, r_.read(count, at_),
                               r_.make(count, Op::cast, DType::i32, {is_below}))));
    body.push_back(for_range(n.name(), capacity_, 0, all, std::move(count)));
    body.push_back(set(r_.begins, t, r_.read(body, at_)));
    const int word = r_.read(place, listed_, n),
              is_own = r_.ask(place, Op::eq,
                              r_.i32(place, Op::shift_right, word, r_.number(bits_)), own);
    const int next = r_.read(put, at_);
    const Expr to = r_.chosen(put, "to", capacity_, next);
    put.push_back(
        set(r_.sorted, to,
            r_.i32(put, Op::bitwise_and, word, r_.number((int64_t{1} << bits_) - 1))));
    put.push_back(set(at_, 0, r_.i32(put, Op::add, next, r_.number(1))));
    place.push_back(if_true(is_own, std::move(put)));
    body.push_back(for_range(n.name(), capacity_, 0, all, std::move(place)));
    body = {if_less(at, r_.targets + 1, std::move(body))};
    if (turns == 1) return body;
    return {for_each(q.name(), turns, false, std::move(body))};
  }

  RunTile& r_;
  const int64_t each_;
  const int bits_;                 // of an update's number
  int64_t capacity_ = 0;           // of the list
  int listed_ = -1, counts_ = -1;  // shared
  int places_ = -1, words_ = -1, alike_ = -1,
      found_ = -1;              // of a thread's updates, and its warp's
  int waiting_ = -1, at_ = -1;  // in the list so far; places of it
};

class OrderedList {
 public:
  explicit OrderedList(RunTile& run) : r_(run) {}

  // Where that goes; the limit for nowhere.
  int target_of(Body& body, const Expr& n) {
    const int place = r_.scalar_at(body, r_.scatter.rhs, r_.ordered(body, n));
    return r_.make(body, Op::where, DType::i64,
                   {r_.is_stray(body, place), r_.number(r_.shape.targets, DType::i64), place});
  }

  // A list from number `from` to `to` of the order; what goes nowhere stands last in it.
  Body list() {
    const int ends = r_.shared("ends", DType::i32, 2);
    Body body, stray, begin;
    const int place =
        r_.scalar_at(stray, r_.scatter.rhs, r_.ordered(stray, Expr(r_.shape.updates - 1)));
    stray.push_back(r_.tell(r_.is_stray(stray, place), place));
    body.push_back(if_less(block_of(r_.p.tile) * kThreads + r_.thread, 1, std::move(stray)));
    append(body, find_ends(ends));
    const Expr from = r_.chosen(body, "from", r_.shape.updates + 1, r_.read(body, ends, 0)),
               to = r_.chosen(body, "to", r_.shape.updates + 1, r_.read(body, ends, 1)),
               q = r_.index("q", ceil_divide(r_.shape.updates + 1, kThreads)),
               n = from + q * kThreads + r_.thread;
    begin.push_back(if_less(n, to + 1, begin_targets(n, from, to)));
    body.push_back(for_range(q.name(), q.bounds().high + 1, 0,
                             floor_div(max(to - from, 0), kThreads) + 1, std::move(begin)));
    body.push_back(barrier());
    return body;
  }

  // ends[0]: the first number that goes to the run's targets or behind them; ends[1]: behind them.
  Body find_ends(int ends) {
    const Expr warp = warp_of(r_.p.tile);
    Body body, told;
    const int is_first = r_.ask(body, Op::lt, r_.data(body, warp), r_.number(1)),
              bound = r_.make(body, Op::where, DType::i64,
                              {is_first, r_.data(body, r_.lowest, DType::i64),
                               r_.data(body, r_.lowest + r_.targets, DType::i64)}),
              found = first_that_fails(
                  r_.p.tile, body, DType::i32, r_.number(0), r_.number(r_.shape.updates),
                  r_.shape.updates, [&](Body&each, int at) {
                    const Expr n = r_.chosen(each, "n", r_.shape.updates, at);
                    return r_.ask(each, Op::lt, target_of(each, n), bound);
                  });
    const int end = r_.read(told, found);
    told.push_back(set(ends, min(warp, 1), end));
    body.push_back(if_less(lane_of_warp(), 1, std::move(told)));
    return {if_less(warp, 2, std::move(body)), barrier()};
  }

  // Of the targets behind the one before, up to that of number n.
  Body begin_targets(const Expr& n, const Expr& from, const Expr& to) {
    const int64_t last = r_.shape.updates - 1;
    Body body, left, right, set_one;
    const int lowest = r_.data(body, r_.lowest, DType::i64), none = r_.number(-1, DType::i64);
    const auto relative = [&](Body& each, const char* what, const Expr& at) {
      const Expr here = r_.name(each, what, r_.shape.updates, at);
      return r_.make(each, Op::sub, DType::i64, {target_of(each, here), lowest});
    };
    const int before = r_.own("before", DType::i64), here = r_.own("here", DType::i64);
    body.push_back(set(before, 0, none));
    left.push_back(set(before, 0, relative(left, "left", min(max(n - 1, 0), last))));
    body.push_back(if_less(from, n, std::move(left)));
    body.push_back(set(here, 0, r_.data(body, r_.targets, DType::i64)));
    right.push_back(set(here, 0, relative(right, "right", min(n, last))));
    body.push_back(if_less(n, to, std::move(right)));
    const int one = r_.number(1, DType::i64);
    const Expr low =
                   r_.chosen(body, "lower", r_.most + 2,
                             r_.make(body, Op::add, DType::i64, {r_.read(body, before), one})),
               high = r_.chosen(body, "upper", r_.most + 2,
                                r_.make(body, Op::add, DType::i64, {r_.read(body, here), one})),
               t = r_.index("t", r_.most + 1);
    set_one.push_back(set(r_.begins, t, r_.data(set_one, n)));
    body.push_back(
        for_range(t.name(), r_.most + 1, low, min(high, r_.most + 1), std::move(set_one)));
    return body;
  }

  RunTile& r_;
};

}  // namespace

Body over_found(RunTile& run, const std::function<Body()>& over_run) {
  return FoundList(run).over(over_run);
}
Body ordered_list(RunTile& run) { return OrderedList(run).list(); }

}  // namespace tiny_compile
