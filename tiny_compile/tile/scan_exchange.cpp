// How does a thread come to know what stands before its group? All put their totals into shared memory, and
// each combines the 16 of its own group of groups:
//
//   totals[thread] = total;  barrier
//   for p < 16 unrolled { before = p - 1 < g%16 ? all : before;  all = all + totals[thread/16*16 + p] }
//
// and of more than 16 groups the same again with what these came to. Where an operator takes many
// instructions, one thread combines them for all: each total becomes what stands before it.
#include "tiny_compile/tile/scan_exchange.h"

#include "tiny_compile/base/integer.h"

namespace tiny_compile {

ScanExchange::ScanExchange(ScanTile& s, Running& running) : s_(s), running_(running) {}

int64_t ScanExchange::rows() const {
  return s_.shape.along ? ceil_divide(s_.threads(), s_.shape.groups) : s_.shape.block_rows;
}

ScanTotals ScanExchange::totals(Body& body, const Stood& own, const Expr& t) {
  const ScanShape& shape = s_.shape;
  if (shape.groups == 1) return {{}, own};
  totals_ = running_.array("totals", (alternates() ? 2 : 1) * room(), Space::Shared);
  if (shape.has_two_levels() || running_.is_costly())
    upper_ = running_.array("upper", room() / at_once() + kGroup, Space::Shared);
  if (shape.has_two_levels() && running_.is_costly())
    whole_ = running_.array("whole", rows(), Space::Shared);
  const Expr from = alternates() ? mod(t, 2) * room() : Expr(0);
  append(body, running_.set(totals_, from + thread_of(s_.tile), own));
  body.push_back(barrier());
  return running_.is_costly() ? by_few(body, from) : by_all(body, from);
}

// Of `count` totals from `first` on: what stands before number `me`, and all of them.
std::pair<Stood, Stood> ScanExchange::combined(Body& body, const StoodArray& from,
                                               const Expr& first, int64_t step, int64_t count,
                                               const Expr& me) {
  const StoodArray before = running_.array("before", 1), all = running_.array("all", 1);
  append(body, running_.set(before, 0, running_.identity()));
  append(body, running_.set(all, 0, running_.identity()));
  const Expr p = s_.index("p", count);
  Body each;
  const Stood so_far = running_.read(each, all, 0), mine = running_.read(each, before, 0);
  const int is_before = running_.is_less(each, p - 1, me);
  append(each, running_.set(before, 0, running_.chosen(each, is_before, so_far, mine)));
  const Stood next = running_.read(each, from, first + p * step);
  append(each, running_.set(all, 0, running_.both(each, so_far, next)));
  body.push_back(for_each(p.name(), count, true, std::move(each)));
  const Stood stood = running_.read(body, before, 0);
  return {stood, running_.read(body, all, 0)};
}

ScanTotals ScanExchange::by_all(Body& body, const Expr& from) {
  const ScanShape& shape = s_.shape;
  const Expr thread = thread_of(s_.tile);
  if (!shape.has_two_levels()) {
    const Expr first = shape.along ? s_.r * shape.groups : s_.r;
    const auto [lower, all] = combined(body, totals_, from + first, stride(), at_once(), s_.g);
    return {{lower}, all};
  }
  const Expr me = mod(s_.g, kGroup);
  const auto [lower, of_lower] =
      combined(body, totals_, from + floor_div(thread, kGroup) * kGroup, 1, kGroup, me);
  body.push_back(if_less(me, 1, running_.set(upper_, floor_div(thread, kGroup), of_lower)));
  body.push_back(barrier());
  const int64_t count = shape.groups / kGroup;
  const auto [upper, all] =
      combined(body, upper_, s_.r * count, 1, count, floor_div(s_.g, kGroup));
  return {{upper, lower}, all};
}

// Each of `count` values becomes what stands before it; all of them go to to[thread].
Body ScanExchange::in_place(const StoodArray& values, const Expr& first, int64_t step,
                            int64_t count, const StoodArray& to) {
  if (here_.values < 0) here_ = running_.array("here", 1);
  Body body;
  append(body, running_.set(here_, 0, running_.read(body, values, first)));
  append(body, running_.set(values, first, running_.identity()));
  const Expr p = s_.index("p", count - 1), at = first + (p + 1) * step;
  Body each;
  const Stood value = running_.read(each, values, at), so_far = running_.read(each, here_, 0);
  append(each, running_.set(values, at, so_far));
  append(each, running_.set(here_, 0, running_.both(each, so_far, value)));
  body.push_back(for_each(p.name(), count - 1, false, std::move(each)));
  append(body, running_.set(to, thread_of(s_.tile), running_.read(body, here_, 0)));
  return body;
}

ScanTotals ScanExchange::by_few(Body& body, const Expr& from) {
  const ScanShape& shape = s_.shape;
  const Expr thread = thread_of(s_.tile);
  const int64_t sequences =
      shape.along ? ceil_divide(s_.threads(), at_once()) : shape.block_rows;
  const Expr first = from + thread * (shape.along ? at_once() : 1);
  body.push_back(
      if_less(thread, sequences, in_place(totals_, first, stride(), at_once(), upper_)));
  body.push_back(barrier());
  if (!shape.has_two_levels()) {
    const Stood lower = running_.read(body, totals_, from + thread);
    return {{lower}, running_.read(body, upper_, s_.r)};
  }
  const int64_t count = shape.groups / kGroup;
  body.push_back(if_less(thread, rows(), in_place(upper_, thread * count, 1, count, whole_)));
  body.push_back(barrier());
  const Stood lower = running_.read(body, totals_, from + thread),
              upper = running_.read(body, upper_, floor_div(thread, kGroup));
  return {{upper, lower}, running_.read(body, whole_, s_.r)};
}

}  // namespace tiny_compile
