// The loops of a tile program that transpose a square of a buffer into an array.
#pragma once

#include <optional>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

constexpr int64_t kSquare = 128;  // elements of a side at most, and of a row of the array

// array[place + r*kSquare + c] = buffer[corner + r + c*stride], r below `rows`, c below `columns`.
struct Square {
  int array = -1, buffer = -1;
  Expr place, corner, stride, rows, columns;
};

// What a loop that is `turned` does; nothing where its body is not a loop of vectors that does such.
std::optional<Square> square_of(const Tile& tile, const Statement& loop);

}  // namespace tiny_compile
