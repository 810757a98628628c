// A row that is sorted: where its keys come from, and where its places go.
#pragma once

#include <vector>

#include "tiny_compile/tile/row_elements.h"
#include "tiny_compile/tile/sort_words.h"

namespace tiny_compile {

struct SortedRow {
  SortedRow(RowTile& r, const Step& step);

  // The place as data, an i64; what is no number is defined at the end of the body.
  int index(Body& body, const Expr& place) const;
  // What these values need of an element of the row is defined there; `scalar` of them.
  int scalar_at(Body& body, const Step& values, const Expr& element, int scalar) const;
  // The key of an element, which counts as one at this place.
  SortWord word_at(Body& body, const Expr& element, const Expr& place) const;
  // A loop over this integer, over the first `length` of a run.
  Statement over(const Expr& e, const Expr& length, Body body, bool vector) const;
  // result[element] = a place, or a word
  Statement store_at(const Expr& element, int place) const;

  RowTile& r;
  const Step step, keys;  // and without what stands beside these
  const Expr count, run;  // elements of the row; of what is sorted apart
  const int64_t first;    // places of a run that are wanted, at most
  const SortWords words;
};

}  // namespace tiny_compile
