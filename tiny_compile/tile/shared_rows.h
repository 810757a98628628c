// Rows that threads of a GPU's block share.
#pragma once

#include <functional>
#include <vector>

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

class SharedRows {
 public:
  // A block has `beside` rows of `threads` each; what the last block lacks, its threads do as the last row's,
  // and store nothing. Of elements that are read and stored neighbouring threads have neighbours in a row or, `across`,
  // of neighbouring rows.
  SharedRows(const Program& program, const Kernel& kernel, int threads, int beside,
             bool across);

  RowTile r;
  const int threads, beside;
  const bool across;
  Expr thread,
      own;  // of what is done for a row: which of its threads, which of the block's rows
  Expr element,
      of_row;  // of what is read and stored: the first of the thread's elements, of which row

  // Names the rows and their axes, and defines what all of a row has alike.
  Body begin();
  // Statements of threads whose row is there: of what is done for it, or is stored.
  Body where_there(Body body) const { return where_there(own, std::move(body)); }

  // body(e): for the thread's elements e of `count`, the last one again where there are no more; stores(e) for
  // those that there are.
  struct Element {
    Body body, stores;
  };
  Body over(int64_t count, const std::function<Element(const Expr& e)>& each) const;
  // The scalars of one of the elements of a step's loops, defined at the end of `body`.
  std::vector<int> scalars_at(Body& body, const Step& step, const Expr& element);
  // Where a step stores that element.
  Expr place_of(const Step& step, const Expr& element) const;

  Body store_step(const Step& step);

 private:
  Body where_there(const Expr& which, Body body) const;
  Expr asked(const Expr& which) const;  // the number of the row, which may be none
  // What the axes are for an element of a step.
  Substitution axes_at(const Step& step, const Expr& element) const;

  const int64_t rows_;
};

}  // namespace tiny_compile
