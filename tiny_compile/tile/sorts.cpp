// How do the threads of a GPU sort a row, or a run of one? Each reads every so manieth element; their words are put in
// order (tile/sort_network.h), and change hands so that lanes store places side by side:
//
//   sort y[i0*100 + j0] for (j0: 100) = argsort load x[i0*100 + j0]
// =>
//   for r < 4 unrolled { e: 100 = min(r*32 + t, 99) ; .. ; words[r] = $9 }        behind all where there is none
//   ..
//   for r < 4 unrolled { places[..] = the place of words[r] }   barrier
//   for q < 4 unrolled { if q*32 + t < 100 { store y[i0*100 + q*32 + t] = places[..] } }
#include "tiny_compile/tile/sorts.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/tile/sort_network.h"
#include "tiny_compile/tile/sorted_row.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

class RunSort {
 public:
  RunSort(const Program& program, const Kernel& kernel)
      : r_(row_tile(program, kernel)),
        row_(r_, kernel.steps[0]),
        words_(row_.words),
        count_(row_.count.constant()),
        run_(row_.run.constant()),
        runs_(ceil_divide(count_, run_)),
        all_(row_count(kernel).constant() * runs_),
        shape_(run_, row_.first, schedule_of(kernel).each) {
    r_.tile.grid = ceil_divide(all_, shape_.rows);
    r_.tile.warps = shape_.rows * shape_.threads / kLanes;
    thread_ = mod(thread_of(r_.tile), shape_.threads);
    of_block_ = floor_div(thread_of(r_.tile), shape_.threads);
    asked_ = block_of(r_.tile) * shape_.rows + of_block_;
  }

  Tile lower() {
    Body& body = r_.tile.body;
    const Expr run = Expr::index("run", all_), rows = row_count(r_.kernel),
               row = Expr::index("row", rows);
    body = {let("run", all_, min(asked_, all_ - 1)), let("row", rows, floor_div(run, runs_))};
    append(body, unpack(r_.kernel, row_axes(r_.kernel), row, {}));
    name_run(run);
    append(body, define_within(r_, wanted_by(r_, {&row_.keys}), shared_scope(r_), r_.defined));
    const SortWordArray words = words_.array("words", shape_.own, Space::Register);
    append(body, read(words));
    append(body, sort_words(r_.tile, words_, shape_, thread_, 0, words));
    append(body, write(words));
    return numbered(std::move(r_.tile), r_.kernel.scalars.size());
  }

 private:
  void name_run(const Expr& run) {
    from_ = 0;
    length_ = run_;
    if (runs_ == 1) return;
    from_ = Expr::index("from", count_);
    r_.tile.body.push_back(let("from", count_, mod(run, runs_) * run_));
    if (count_ % run_ == 0) return;
    length_ = Expr::index("length", run_ + 1);
    r_.tile.body.push_back(let("length", run_ + 1, min(count_ - from_, run_)));
  }

  // Element `at` of the run, or the row's last.
  Statement element(const Expr& at) const {
    return let("e", count_, min(from_ + at, count_ - 1));
  }

  // The words of the row. What is missing in it comes last: such a thread reads the last element again, which has
  // no loads wait for a condition.
  Body read(const SortWordArray& words) {
    const Expr r = Expr::index("r", shape_.own), at = r * shape_.threads + thread_;
    Body body = {element(at)};
    SortWord word = row_.word_at(body, Expr::index("e", count_), from_ + at);
    if (!length_.is_constant(shape_.padded())) {
      const int is_there = words_.make(body, Op::lt, DType::boolean,
                                       {row_.index(body, at), row_.index(body, length_)});
      const int place = row_.index(body, from_ + at);
      word = words_.either(body, is_there, word, words_.behind_all(body, place));
    }
    words_.put(body, words, r, word);
    return {for_each("r", shape_.own, true, std::move(body))};
  }

  // Where the threads of a row leave a place for another: lanes meet in no bank.
  Expr slot(const Expr& at) const { return of_block_ * slots() + at + floor_div(at, kLanes); }
  int slots() const { return shape_.padded() + shape_.padded() / kLanes; }

  bool gives_words() const { return row_.step.dtype != DType::i64; }

  // By way of shared memory, so that neighbours store side by side: words, or places in the run.
  Body write(const SortWordArray& words) {
    const DType dtype = gives_words() ? words_.type() : DType::i32;
    const int room = add_array(r_.tile, {gives_words() ? "in_order" : "places", dtype,
                                         shape_.rows * slots(), Space::Shared});
    const Expr r = Expr::index("r", shape_.own);
    Body give;
    const SortWord word = words_.read(give, words, r);
    give.push_back(set(room, slot(thread_ * shape_.own + r),
                       gives_words() ? word.key : place_in_run(give, word)));
    const Expr wanted = row_.first < run_ ? Expr(row_.first) : length_;
    const int64_t turns = ceil_divide(wanted.bounds().high, shape_.threads);
    return {for_each("r", shape_.own, true, std::move(give)), barrier(),
            for_each("q", turns, true,
                     take(room, Expr::index("q", turns) * shape_.threads + thread_, wanted))};
  }

  int place_in_run(Body& body, const SortWord& word) {
    int place = words_.place(body, word);
    if (!from_.is_constant(0))
      place = words_.make(body, Op::sub, DType::i64, {place, row_.index(body, from_)});
    return words_.make(body, Op::cast, DType::i32, {place});
  }

  int place_in_row(Body& body, int place) {
    place = words_.make(body, Op::cast, DType::i64, {place});
    return from_.is_constant(0)
               ? place
               : words_.make(body, Op::add, DType::i64, {place, row_.index(body, from_)});
  }

  // What the thread stores for element `at`, if there is one that is wanted.
  Body take(int room, const Expr& at, const Expr& wanted) {
    const bool asks = !wanted.is_constant() || wanted.constant() % shape_.threads != 0;
    Body body = {runs_ == 1 ? let("e", count_, at) : element(at)};
    int stored = read_back(r_, body, room, slot(at));
    if (!gives_words()) stored = place_in_row(body, stored);
    body.push_back(row_.store_at(Expr::index("e", count_), stored));
    if (asks) body = {if_less(at, wanted, std::move(body))};
    if (all_ % shape_.rows != 0) body = {if_less(asked_, all_, std::move(body))};
    return body;
  }

  RowTile r_;
  const SortedRow row_;
  const SortWords& words_;
  const int64_t count_, run_;  // elements of a row, and of a run
  const int64_t runs_, all_;   // of a row, of all rows
  const SortShape shape_;
  Expr thread_, of_block_, asked_;  // of its run; the run's number in the block, and among all
  Expr from_, length_;              // of the run at hand
};

}  // namespace

Tile lower_sort(const Program& program, const Kernel& kernel) {
  if (kernel.steps[0].rhs >= 0) return lower_merge(program, kernel);
  return RunSort(program, kernel).lower();
}

}  // namespace tiny_compile
