// How a chunk's elements come into an array.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {

// A step that reduces a row.
struct RowReduction {
  RowTile& rows;
  const Step& step;
  DType type = DType::f32;    // that it adds up in
  Expr count = 1;             // elements of the row
  std::vector<int> wanted{};  // what these take
  std::optional<Expr> end{};  // what `count` is a name for, where some rows end early
  // Loads that the next row repeats: buffer, and where that has element `base` of it.
  std::vector<std::pair<int, Expr>> following{};
  Expr base() const;  // the symbol
};

// What values come to by the tree's halvings, at the end of `body`; of a zero maximum the sign is either.
int combined(RowTile& r, Body& body, Op op, DType type, std::vector<int> values);

// Elements `base` .. base + count - 1, at most 1024 of them: array[l] = element base + l. Without an array
// they are only kept for later steps.
Body fill(RowReduction& x, int array, const Expr& base, const Expr& count);

// An element's value, at the end of `body`; as what is added up.
int element(RowReduction& x, Body& body, const RowPlace& place);
int as_added(RowTile& r, Body& body, DType type, int value);

// The tree's first three halvings of a full chunk, straight from its eighths:
// array[l] = what elements base + l + 128*part, parts 0 .. 7, come to.
Body fill_eighths(RowReduction& x, int array, const Expr& base);
// The same of what an array has: array[l] = .. from[base + l + 128*part]; of `op`.
Body halve_thrice(RowTile& r, Op op, DType type, int from, const Expr& base, int array);

}  // namespace tiny_compile
