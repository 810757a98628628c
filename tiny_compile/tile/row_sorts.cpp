// How does a thread sort a row? Of few elements each takes the place that the number of those before it says:
//
//   sort y[i0*100 + j0] for (j0: 100) = argsort load x[i0*100 + j0]
// =>
//   for e < 100 vector { .. words[e] = $9 ; ranks[e] = 0 }
//   for k < 100 { $10 = words[k] ; for e < 100 vector { $11 = words[e] ; ranks[e] += lt($10, $11) } }
//   for e < 100 { at: 100 = ranks[e] ; store y[i0*100 + at] = e }
//
// Of more their digits are sorted (tile/row_digits.h).
#include "tiny_compile/tile/row_sorts.h"

#include <algorithm>

#include "tiny_compile/tile/row_digits.h"
#include "tiny_compile/tile/sorted_row.h"
#include "tiny_compile/tile/stores.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostRanked = 1024;

class RowSort {
 public:
  RowSort(RowTile& r, const Step& step) : r_(r), row_(r, step), words_(row_.words) {}

  Body lower() {
    Body body = define_within(r_, wanted_by(r_, {&row_.keys}), shared_scope(r_), r_.defined);
    const Expr &count = row_.count, &run = row_.run;
    if (row_.step.limit.is_constant(0)) {
      append(body, sorted(0, count));
      return body;
    }
    const Expr runs = ceil_div(count, run), c = r_.index("c", runs),
               length = r_.index("length", run + 1);
    Body each = {let(length.name(), run + 1, min(count - c * run, run))};
    append(each, sorted(c * run, length));
    body.push_back(for_range(c.name(), runs, 0, runs, std::move(each)));
    return body;
  }

  // Of one element of the row, which counts those of its run that go before it.
  Body ranked(const Expr& at) {
    Body body = define_within(r_, wanted_by(r_, {&row_.keys}), shared_scope(r_), r_.defined);
    const bool is_whole = row_.step.limit.is_constant(0);
    const Expr &count = row_.count, &run = row_.run, e = r_.index("e", count),
               from = is_whole ? Expr(0) : floor_div(at, run) * run,
               end = is_whole ? count : min(from + run, count);
    const int before = add_array(r_.tile, {"before", DType::i64, 1});
    const SortWord own = row_.word_at(body, at, at);
    body.push_back(set(before, 0, words_.number(DType::i64, 0)));
    Body each;
    const SortWord other = row_.word_at(each, e, e);
    count_if(each, before, 0, words_.is_before(each, other, own));
    body.push_back(for_range(e.name(), count, from, end, std::move(each)));
    const int rank = read_back(r_, body, before, 0);
    append(body, store_at_rank(from, rank, at));
    return body;
  }

 private:
  void count_if(Body& body, int counts, const Expr& at, int is_one) const {
    const DType dtype = r_.tile.arrays[counts].dtype;
    const int more = words_.make(body, Op::cast, dtype, {is_one}),
              so_far = read_back(r_, body, counts, at);
    body.push_back(set(counts, at, words_.make(body, Op::add, dtype, {so_far, more})));
  }

  // An element of the run from `from` on; one that comes too late is not wanted.
  Body store_at_rank(const Expr& from, int rank, const Expr& flat) const {
    const bool are_all = row_.first == row_.run.bounds().high;
    const Expr extent = are_all ? row_.run : Expr(row_.first), at = r_.index("at", extent);
    Body body = {let_chosen(at.name(), extent, rank)};
    const int place = row_.index(body, flat);
    // The last run may be shorter, and has no such ranks.
    const Expr to = r_.index("to", row_.count);
    if (!row_.step.limit.is_constant(0))
      body.push_back(let(to.name(), row_.count, min(from + at, row_.count - 1)));
    body.push_back(row_.store_at(row_.step.limit.is_constant(0) ? from + at : to, place));
    if (are_all) return body;
    Body asked;
    const DType dtype = r_.tile.kernel.scalars[rank].dtype;
    const int is_first =
        words_.make(asked, Op::lt, DType::boolean, {rank, words_.number(dtype, row_.first)});
    asked.push_back(if_true(is_first, std::move(body)));
    return asked;
  }

  // Whether few elements are ranked before their digits are counted: n^2 comparisons in vectors, or for each digit
  // its counts and n words moved. Measured on one CPU, f16 to i64.
  bool are_few() const {
    const int64_t lanes = r_.program.machine.vector / size_of(words_.type()),
                  n = row_.run.bounds().high;
    return row_.run.is_constant() && n <= kMostRanked &&
           n * n <= lanes * digits_of(words_) * (300 + 2 * n);
  }

  Body sorted(const Expr& from, const Expr& length) {
    if (are_few()) return by_ranks(from, length);
    Body body = sort_by_digits(row_, from, length);
    if (length.is_constant()) return body;
    return {if_less(0, length, std::move(body))};
  }

  Body by_ranks(const Expr& from, const Expr& length) {
    const Expr e = r_.index("e", row_.run), k = r_.index("k", row_.run);
    const SortWordArray all = words_.array("words", row_.run, Space::L1);
    const DType dtype = words_.type();  // lanes as wide as words
    const int ranks = add_array(r_.tile, {"ranks", dtype, row_.run, Space::L1});
    Body first, each, other, last;
    words_.put(first, all, e, row_.word_at(first, from + e, from + e));
    first.push_back(set(ranks, e, words_.number(dtype, 0)));
    const SortWord own = words_.read(each, all, k), word = words_.read(other, all, e);
    count_if(other, ranks, e, words_.is_before(other, own, word));
    each.push_back(row_.over(e, length, std::move(other), true));
    const int rank = read_back(r_, last, ranks, e);
    append(last, store_at_rank(from, rank, from + e));
    return {row_.over(e, length, std::move(first), true),
            row_.over(k, length, std::move(each), false),
            row_.over(e, length, std::move(last), false)};
  }

  RowTile& r_;
  const SortedRow row_;
  const SortWords& words_;
};

}  // namespace

Body sort_row(RowTile& r, int number) { return RowSort(r, r.kernel.steps[number]).lower(); }

Body rank_element(RowTile& r, const Expr& number) {
  return RowSort(r, r.kernel.steps[0]).ranked(number);
}

}  // namespace tiny_compile
