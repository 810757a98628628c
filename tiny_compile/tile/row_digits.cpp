// How is a long row sorted? By digits of its keys, the lowest first; elements of equal digits stay in order:
//
//   sort y[i0*1000 + j0] for (j0: 1000) = argsort load x[i0*1000 + j0]
// =>
//   for e < 1000 vector { .. words[e] = $9 }                     in order of places
//   for e < 1000 { $10 = words[e] ; d0: 256 = its lowest digit ; counts[d0] += 1 ; d1: 256 = .. }
//   for p < 4 { counts[p*256 + n] = of how many words digit p is below n }
//   if $20 { for e < 1000 { $21 = words[e] ; d0: 256 = .. ; at: 1000 = counts[d0] ; other[at] = $21 ; counts[d0] += 1 } }
//   else { other[..] = words[..] }                               where digit 0 is the same in all
//   ..
//   for e < 1000 vector { $40 = words[e] ; store y[i0*1000 + e] = its place }
#include "tiny_compile/tile/row_digits.h"

#include "tiny_compile/base/integer.h"
#include "tiny_compile/tile/stores.h"

namespace tiny_compile {
namespace {

constexpr int kDigit = 8;  // bits
constexpr int64_t kDigits = 1 << kDigit;

class DigitSort {
 public:
  explicit DigitSort(const SortedRow& row)
      : r_(row.r), row_(row), words_(row.words), passes_(digits_of(row.words)) {}

  Body lower(const Expr& from, const Expr& length) {
    Digits d = plan_digits();
    const int64_t all = passes_ * kDigits;
    const Expr e = r_.index("e", row_.run), n = r_.index("n", all);
    Body body = {
        vector_loop({n.name(), all}, 0, all, {set(d.counts, n, words_.number(d.counted, 0))})};
    Body each, last;
    words_.put(each, d.from, e, row_.word_at(each, from + e, from + e));
    body.push_back(row_.over(e, length, std::move(each), true));
    body.push_back(row_.over(e, length, counted(d, e), false));
    const std::vector<int> differ = which_differ(body, d, length);
    append(body, counts_before(d));
    for (int pass = 0; pass < passes_; pass++) {
      body.push_back(
          if_true(differ[pass], {row_.over(e, length, moved_by_digit(d, e, pass), false)}));
      body.push_back(otherwise({row_.over(e, length, moved(d, e), true)}));
      std::swap(d.from, d.to);
    }
    const int place = words_.place(last, words_.read(last, d.from, e));
    last.push_back(row_.store_at(from + e, place));
    body.push_back(row_.over(e, min(length, row_.first), std::move(last), true));
    return body;
  }

 private:
  // Words, and how many of them have each digit; then how many come before the next of that digit.
  struct Digits {
    SortWordArray from, to;
    int counts;
    DType counted;  // in what
  };

  Digits plan_digits() {
    const int64_t bytes = 4 * row_.run.bounds().high * size_of(words_.type());
    const bool fits = row_.run.is_constant() && bytes <= r_.program.machine.l2 / 2;
    const Space space = fits ? Space::L2 : Space::Memory;
    const DType counted = row_.run.bounds().high <= INT32_MAX ? DType::i32 : DType::i64;
    return {words_.array("words", row_.run, space), words_.array("other", row_.run, space),
            add_array(r_.tile, {"counts", counted, passes_ * kDigits, Space::L1}), counted};
  }

  // counts[..] of the word's digit, named, of this pass.
  Expr digit(Body& body, const SortWord& word, int pass, const char* name = "d") const {
    const Expr d = r_.index(str(name, pass), kDigits);
    const DType type = words_.type();
    const int moved =
        words_.make(body, Op::shift_right, type,
                    {word.key, words_.number(type, words_.shift() + pass * kDigit)});
    const int low =
        words_.make(body, Op::bitwise_and, type, {moved, words_.number(type, kDigits - 1)});
    body.push_back(let_chosen(d.name(), kDigits, low));
    return pass * kDigits + d;
  }

  Body counted(const Digits& d, const Expr& e) const {
    Body body;
    const SortWord word = words_.read(body, d.from, e);
    for (int pass = 0; pass < passes_; pass++) {
      const Expr at = digit(body, word, pass);
      const int so_far = read_back(r_, body, d.counts, at);
      body.push_back(set(d.counts, at, one_more(body, so_far, d.counted)));
    }
    return body;
  }

  // Of each digit, whether it is not the first word's in all of them: else they stay as they are.
  std::vector<int> which_differ(Body& body, const Digits& d, const Expr& length) const {
    const SortWord first = words_.read(body, d.from, 0);
    const int all = words_.make(body, Op::cast, d.counted, {row_.index(body, length)});
    std::vector<int> differ;
    for (int pass = 0; pass < passes_; pass++) {
      const int same = read_back(r_, body, d.counts, digit(body, first, pass, "first"));
      differ.push_back(words_.make(body, Op::lt, DType::boolean, {same, all}));
    }
    return differ;
  }

  int one_more(Body& body, int count, DType dtype) const {
    return words_.make(body, Op::add, dtype, {count, words_.number(dtype, 1)});
  }

  // counts[p*256 + d]: of how many elements digit p is below d.
  Body counts_before(const Digits& d) {
    const int running = add_array(r_.tile, {"running", d.counted, 1, Space::L1});
    const Expr p = r_.index("p", passes_), n = r_.index("n", kDigits), at = p * kDigits + n;
    Body each;
    const int own = read_back(r_, each, d.counts, at), before = read_back(r_, each, running, 0),
              both = words_.make(each, Op::add, d.counted, {before, own});
    each.push_back(set(d.counts, at, before));
    each.push_back(set(running, 0, both));
    Body pass = {set(running, 0, words_.number(d.counted, 0)),
                 for_range(n.name(), kDigits, 0, kDigits, std::move(each))};
    return {for_range(p.name(), passes_, 0, passes_, std::move(pass))};
  }

  Body moved_by_digit(const Digits& d, const Expr& e, int pass) const {
    Body body;
    const SortWord word = words_.read(body, d.from, e);
    const Expr of_digit = digit(body, word, pass), at = r_.index("at", row_.run);
    const int next = read_back(r_, body, d.counts, of_digit);
    body.push_back(let_chosen(at.name(), row_.run, next));
    words_.put(body, d.to, at, word);
    body.push_back(set(d.counts, of_digit, one_more(body, next, d.counted)));
    return body;
  }

  Body moved(const Digits& d, const Expr& e) const {
    Body body;
    words_.put(body, d.to, e, words_.read(body, d.from, e));
    return body;
  }

  RowTile& r_;
  const SortedRow& row_;
  const SortWords& words_;
  const int passes_;  // a digit each
};

}  // namespace

int digits_of(const SortWords& words) {
  return static_cast<int>(ceil_divide(words.key_bits(), kDigit));
}

Body sort_by_digits(const SortedRow& row, const Expr& from, const Expr& length) {
  return DigitSort(row).lower(from, length);
}

}  // namespace tiny_compile
