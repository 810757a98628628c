// The two routines of every generated matrix product: a tile in registers, a transposition.
#pragma once

#include <set>
#include <string>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/loops/machine.h"

namespace tiny_compile {

// What a dot of this dtype multiplies in: integers wrap, so their sign does not matter.
struct TileType {
  std::string name;  // suffix of the routines' names: "float", "u32"
  std::string type;  // in C: "float", "unsigned"
  std::string fma;   // one product of vectors
};
TileType tile_type(DType dtype);

// Rows of a tile of two vectors at most: 12 with what they are multiplied with fill the 32 registers of
// AVX-512, 6 the 16 of AVX. And its vectors, such that the last one of so many columns is nearly full.
int64_t most_tile_rows(const Machine& machine);
int64_t tile_vectors(int64_t columns, int64_t lanes);

// Text of these, each type once, for vectors of so many bytes:
//
//   tc_lanes_float    elements of a vector
//   tc_tile_float<rows, vectors>(a, b, depth, c, goes_on)
//       c[i][l] = fma(a[k][i], b[k][l], c[i][l]) for k ascending, from +0 unless goes_on; packed:
//       a is depth x rows, b depth x lanes, c rows x lanes
//   tc_transpose_float<width>(from, depth, to)
//       to[k][l] = from[l][k] for k < depth <= 64; from has as many rows of 64 as fill vectors,
//       and to[depth] may be followed by a vector's elements
std::string tile_helpers(const std::set<DType>& dtypes, int64_t vector);

// Rows of a tile, at most `most`: such that runs of so many rows (0: none) are whole panels, or
// panels whole runs, else such that the last panel is nearly full.
int64_t tile_rows(int64_t rows, int64_t run, int64_t most);

}  // namespace tiny_compile
