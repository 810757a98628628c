// Where is element e of a row that is sorted? Its key where the step's loop would read it, its place where the loop
// would store it:
//
//   sort y[i0*100 + j0] for (j0: 100) = argsort load x[i0*100 + j0]
// =>
//   $1 = load x[i0*100 + e] ; $2 = index[e] ; .. ; $9 = bitwise_or($7, $8)       the word of e
//   store y[i0*100 + e] = $12
#include "tiny_compile/tile/sorted_row.h"

#include <algorithm>

#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/tile/accumulator.h"

namespace tiny_compile {
namespace {

Step keys_of(Step sort) {
  sort.rhs = sort.mask = -1;
  return sort;
}

}  // namespace

SortedRow::SortedRow(RowTile& row, const Step& sort)
    : r(row),
      step(sort),
      keys(keys_of(sort)),
      count(inner_count(row.kernel, sort)),
      run(sorted_run(row.kernel, sort)),
      first(std::min(first_places(row.kernel, sort), run.bounds().high)),
      words(row.tile, row.kernel.scalars[sort.value].dtype, sort.op == Op::argsort_descending,
            most_places(row.kernel, sort)) {}

int SortedRow::index(Body& body, const Expr& place) const {
  return as_data(r.tile, body, place);
}

int SortedRow::scalar_at(Body& body, const Step& values, const Expr& element,
                         int scalar) const {
  RowElement e = element_at(r, wanted_by(r, {&values}), {{}, r.ids, r.defined},
                            {element, unflatten(r.kernel, step.inner, element)});
  append(body, std::move(e.body));
  return e.ids[scalar];
}

SortWord SortedRow::word_at(Body& body, const Expr& element, const Expr& place) const {
  const int key = scalar_at(body, keys, element, step.value);
  return words.of(body, key, index(body, place));
}

Statement SortedRow::over(const Expr& e, const Expr& length, Body body, bool vector) const {
  Statement loop = for_range(e.name(), run, 0, length, std::move(body));
  loop.vector = vector;
  return loop;
}

Statement SortedRow::store_at(const Expr& element, int place) const {
  return store(step.buffer, substitute(step.index, unflatten(r.kernel, step.inner, element)),
               place);
}

}  // namespace tiny_compile
