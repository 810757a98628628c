// The loops of a tile program that transpose a square of a buffer, or of lines in an array, into an array.
#pragma once

#include <optional>

#include "tiny_compile/loops/transposed_loads.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// array[place + r*kSquare + c] = buffer[corner + r + c*stride], r below `rows`, c below `columns`.
struct Square {
  int array = -1, buffer = -1;
  Expr place, corner, stride, rows, columns;
};

constexpr int64_t kLine =
    64;  // elements of a line that is transposed, at most, and from one to the next

// array[place + k*width + l] = lines[l*kLine + k], k below `steps`, l below `width`; of words, or floats and integers
// of eight bytes.
struct TransposedLines {
  int array = -1, lines = -1;
  Expr place, steps;
  int64_t width = 1;
};
std::optional<TransposedLines> transposed_lines(const Tile& tile, const Statement& loop);

// What a loop that is `transposed` does; nothing where its body is not a loop of vectors that does such.
std::optional<Square> square_of(const Tile& tile, const Statement& loop);

}  // namespace tiny_compile
