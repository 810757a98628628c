// A loop along the depth of a product whose sums, a tile of rows and columns, stay in registers (tile.h).
#pragma once

#include <optional>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// sums[i*columns + l] = left[i*lane + k*step] * right[k*columns + l] + sums[i*columns + l], of floats
// rounded once, integers wrap; for i < rows, l < columns and k < depth, ascending. The left one is an array or a buffer.
struct Multiplied {
  int sums = -1, left = -1, left_buffer = -1, right = -1;
  Expr sums_place, left_place, right_place;
  int64_t lane = 0, step = 0;
  int64_t rows = 1, columns = 1;
  Expr depth;
  Body asks;  // what each turn asks for ahead, with the loop's name
};

// Of a loop whose statements do just that, if they do.
std::optional<Multiplied> multiplied_of(const Tile& tile, const Statement& loop);

// "", or why a machine with vectors of so many bytes has not the registers for it.
std::string why_no_registers(const Tile& tile, const Multiplied& product, int64_t vector);

}  // namespace tiny_compile
