// How often are a tile's values used, and how: may an element be read, and a half be rounded, where it is used?
#pragma once

#include <set>
#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

struct TileUses {
  std::vector<int> counts;  // of each scalar
  std::set<int> read;       // arrays that scalars are read from
  std::vector<bool>
      taken;  // scalars that are read from an array somewhere rather than computed
  std::vector<bool>
      standing;  // elements that still stand in their array wherever they are used
};

TileUses uses_of(const Tile& tile);

// Of each scalar, whether a half is rounded where it is computed: not where nothing but stores of its dtype use
// it, for these round.
std::vector<bool> rounds_on_cpu(const Program& program, const Tile& tile);
// The same of a GPU, whose stores of vectors round in pairs.
std::vector<bool> rounds_on_gpu(const Tile& tile, const TileUses& uses);

}  // namespace tiny_compile
