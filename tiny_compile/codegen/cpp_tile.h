// The two routines of every generated matrix product: a tile in registers, a transposition.
#pragma once

#include <set>
#include <string>

#include "tiny_compile/base/dtype.h"

namespace tiny_compile {

// What a dot of this dtype multiplies in: integers wrap, so their sign does not matter.
struct TileType {
  std::string name;  // suffix of the routines' names: "float", "u32"
  std::string type;  // in C: "float", "unsigned"
  std::string fma;   // one product of vectors
};
TileType tile_type(DType dtype);

// Text of these, each type once:
//
//   tc_lanes_float, tc_most_rows, tc_tile_rows, tc_tile_vectors(n, lanes)    sizes of a tile
//   tc_tile_float<rows, vectors>(a, b, depth, c, goes_on)
//       c[i][l] = fma(a[k][i], b[k][l], c[i][l]) for k ascending, from +0 unless goes_on; packed:
//       a is depth x rows, b depth x lanes, c rows x lanes
//   tc_transpose_float<width>(from, depth, to)
//       to[k][l] = from[l][k] for k < depth <= 64; from has as many rows of 64 as fill vectors,
//       and to[depth] may be followed by a vector's elements
std::string tile_helpers(const std::set<DType>& dtypes);

// Rows of a tile, at most `most`: such that runs of so many rows (0: none) are whole panels, or
// panels whole runs, else such that the last panel is nearly full.
int64_t tile_rows(int64_t rows, int64_t run, int64_t most);

}  // namespace tiny_compile
