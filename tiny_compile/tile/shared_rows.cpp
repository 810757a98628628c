// How do threads of a block share a row? Neighbouring threads have neighbouring elements, in memory:
//
//   rows(i0: 7) { store y[i0*1000 + j0] for (j0: 1000) = load x[j0] }     4 rows of 64 threads
// =>
//   row: 7 = min(block*4 + warp/2, 6);  i0: 7 = row
//   for q < 2 { for p < 8 unrolled { e: 1000 = min((q*8 + p)*64 + thread%64, 999);  $0 = load x[e]
//     if (q*8 + p)*64 + thread%64 < 1000 { if block*4 + warp/2 < 7 { store y[i0*1000 + e] = $0 } } } }
#include "tiny_compile/tile/shared_rows.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAtOnce = 8;  // elements of a thread whose loads are on their way

}  // namespace

SharedRows::SharedRows(const Program& program, const Kernel& kernel, int most, int rows,
                       bool is_across)
    : r(row_tile(program, kernel)),
      threads(most),
      beside(rows),
      across(is_across && rows > 1),
      rows_(row_count(kernel).constant()) {
  r.tile.grid = ceil_divide(rows_, beside);
  r.tile.warps = threads * beside / kLanes;
  const Expr all = thread_of(r.tile);
  thread = beside == 1 ? all : mod(all, threads);
  own = beside == 1 ? Expr(0) : floor_div(all, threads);
  element = across ? floor_div(all, beside) : thread;
  of_row = across ? mod(all, beside) : own;
}

Expr SharedRows::asked(const Expr& which) const { return block_of(r.tile) * beside + which; }

Body SharedRows::begin() {
  const auto name = [&](const char* what, const Expr& which) {
    const Expr row = r.index(what, rows_);
    return let(row.name(), rows_,
               rows_ % beside == 0 ? asked(which) : min(asked(which), rows_ - 1));
  };
  Body body = {name("row", own)};
  append(body, unpack(r.kernel, row_axes(r.kernel), r.index("row", rows_), {}));
  if (across) {
    body.push_back(name("other", of_row));
    return body;
  }
  std::vector<const Step*> steps;
  for (const Step& step : r.kernel.steps) steps.push_back(&step);
  append(body, define_within(r, wanted_by(r, steps), shared_scope(r), r.defined));
  return body;
}

Body SharedRows::where_there(const Expr& which, Body body) const {
  if (rows_ % beside == 0) return body;
  return {if_less(asked(which), rows_, std::move(body))};
}

Body SharedRows::over(int64_t count, const std::function<Element(const Expr& e)>& each) const {
  if (count == 0) return {};
  const int64_t turns = ceil_divide(count, threads), inner = std::min(turns, kAtOnce),
                outer = ceil_divide(turns, inner);
  const Expr q = outer == 1 ? Expr(0) : r.index("q", outer), p = r.index("p", inner),
             at = (q * inner + p) * threads + element, e = r.index("e", count);
  const bool is_whole = outer * inner * threads == count;
  Element own_element = each(e);
  Body body = {let(e.name(), count, is_whole ? at : min(at, count - 1))};
  append(body, std::move(own_element.body));
  if (!is_whole && !own_element.stores.empty())
    own_element.stores = {if_less(at, count, std::move(own_element.stores))};
  append(body, std::move(own_element.stores));
  Statement loop = for_each(p.name(), inner, true, std::move(body));
  if (outer == 1) return {std::move(loop)};
  return {for_each(q.name(), outer, false, {std::move(loop)})};
}

Substitution SharedRows::axes_at(const Step& step, const Expr& at) const {
  Substitution axes = unflatten(r.kernel, step.inner, at);
  if (!across) return axes;
  const Substitution rows = unflatten(r.kernel, row_axes(r.kernel), r.index("other", rows_));
  axes.insert(axes.end(), rows.begin(), rows.end());
  return axes;
}

std::vector<int> SharedRows::scalars_at(Body& body, const Step& step, const Expr& at) {
  RowElement e =
      element_at(r, wanted_by(r, {&step}), {{}, r.ids, r.defined}, {at, axes_at(step, at)});
  append(body, std::move(e.body));
  return e.ids;
}

Expr SharedRows::place_of(const Step& step, const Expr& at) const {
  return substitute(step.index, axes_at(step, at));
}

Body SharedRows::store_step(const Step& step) {
  return over(inner_count(r.kernel, step).constant(), [&](const Expr& e) {
    Element one;
    const std::vector<int> ids = scalars_at(one.body, step, e);
    one.stores = where_there(of_row, {store(step.buffer, place_of(step, e), ids[step.value])});
    return one;
  });
}

}  // namespace tiny_compile
