// Which reductions need no order? What is exact has one accumulator, and goes one element after the other:
//
//   r0 = argmax(j0: 100) load x[..]
// =>
//   best[0] = -inf ; best_at[0] = 0
//   for j0: 100 { $0 = load x[..] ; $1 = best[0] ; $2 = gt($0, $1) ; if $2 { best[0] = $0 ; best_at[0] = $3 } }
//   r0 = best_at[0]
//
// Lanes have one each, and choose where a row branches.
#include "tiny_compile/tile/row_exact.h"

#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/columns.h"

namespace tiny_compile {
namespace {

// Of a row's elements from .. to - 1, one after the other: each(body, value, number).
Body one_by_one(RowReduction& x, const Expr& from, const Expr& to,
                const std::function<void(Body&, int, const Expr&)>& each) {
  RowTile& r = x.rows;
  const Kernel& kernel = r.kernel;
  const bool is_axis = x.step.inner.size() == 1;
  const Axis loop = is_axis ? kernel.axes[x.step.inner[0]]
                            : Axis{r.index("e", 1).name(), x.count.bounds().high};
  const Expr e = loop.symbol();
  Body body = at_element(
      x, e, [&](Body& own) { each(own, as_added(r, own, x.type, r.ids[x.step.value]), e); });
  return {for_range(loop.name, loop.extent, from, to, std::move(body))};
}

// Whether a value takes the place of the best before it: the first NaN, else the first of equals.
int beats(RowReduction& x, Body& body, int value, int best) {
  const auto ask = [&](Op op, int a, int b) {
    return computed(x.rows.tile, body, op, DType::boolean, {a, b});
  };
  const int is_better = ask(x.step.op == Op::argmax ? Op::gt : Op::lt, value, best);
  if (!is_float(x.type)) return is_better;
  const int is_nan = ask(Op::ne, value, value), was_number = ask(Op::eq, best, best);
  return ask(Op::bitwise_and, was_number, ask(Op::bitwise_or, is_nan, is_better));
}

}  // namespace

Body accumulate(RowReduction& x, Op op, int array, const Expr& from, const Expr& to) {
  RowTile& r = x.rows;
  const Expr own = own_place(r, 0);
  Body body = for_lanes(r, {set(array, own, add_constant(r.tile, identity(op, x.type)))});
  append(body, one_by_one(x, from, to, [&](Body& each, int value, const Expr&) {
           const int so_far = read_back(r, each, array, own);
           each.push_back(
               set(array, own, computed(r.tile, each, pairwise(op), x.type, {so_far, value})));
         }));
  return body;
}

int find_place(RowReduction& x, Body& body) {
  RowTile& r = x.rows;
  const DType counted = r.lanes ? DType::i32 : DType::i64;  // as wide as most values
  const Expr own = own_place(r, 0);
  const Op most = x.step.op == Op::argmax ? Op::max : Op::min;
  const int best = scratch(r, str("best_", x.type), x.type, 1),
            place = scratch(r, "best_at", counted, 1),
            worst = add_constant(r.tile, identity(most, x.type)),
            first = add_constant(r.tile, Literal::of_integer(counted, 0));
  append(body, for_lanes(r, {set(best, own, worst), set(place, own, first)}));
  append(body, one_by_one(x, 0, x.count, [&](Body& each, int value, const Expr& e) {
           const int so_far = read_back(r, each, best, own),
                     takes = beats(x, each, value, so_far), at = add_index(r.tile, e);
           if (!r.lanes) {  // what beats all before it is rare
             each.push_back(
                 if_true(takes, {set(best, own, value), define(at), set(place, own, at)}));
             return;
           }
           each.push_back(define(at));
           const auto choose = [&](int array, DType dtype, int now, int before) {
             each.push_back(set(
                 array, own, computed(r.tile, each, Op::where, dtype, {takes, now, before})));
           };
           choose(best, x.type, value, so_far);
           const int here = computed(r.tile, each, Op::cast, counted, {at});
           choose(place, counted, here, read_back(r, each, place, own));
         }));
  return place;
}

int first_of(RowReduction& x, Body& body, const std::vector<int>& values) {
  Tile& tile = x.rows.tile;
  const auto number = [&](size_t e) {
    return add_constant(tile, Literal::of_integer(DType::i32, static_cast<int64_t>(e)));
  };
  int best = values[0], place = number(0);
  for (size_t e = 1; e < values.size(); e++) {
    const int takes = beats(x, body, values[e], best);
    place = computed(tile, body, Op::where, DType::i32, {takes, number(e), place});
    best = computed(tile, body, Op::where, x.type, {takes, values[e], best});
  }
  return place;
}

}  // namespace tiny_compile
