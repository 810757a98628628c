// Reading a tile's text out of a longer one, and what errors about it name.
#pragma once

#include <string_view>
#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

struct ParsedTile {
  int kernel = -1;  // which of the program's
  int sized = -1;   // which of its schedules for some sizes, if it is of one
  Tile tile;
  size_t end = 0;  // of the text that was read, space behind it included
  std::vector<size_t>
      lines;  // where its statements begin, in order, those inside behind their own
};

// Throws tc::Error with line and column.
ParsedTile parse_tile_at(const Program& program, std::string_view text, size_t at);

}  // namespace tiny_compile
