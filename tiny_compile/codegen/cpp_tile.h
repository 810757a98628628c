// The two routines of every generated matrix product: a tile in registers, a transposition.
#pragma once

#include <string>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/codegen/calls.h"

namespace tiny_compile {

// What is multiplied: integers wrap, so their sign does not matter.
struct TileType {
  std::string name;  // suffix of the routines' names: "float", "u32"
  std::string type;  // in C: "float", "unsigned"
  std::string fma;   // one product of vectors
};
TileType tile_type(DType dtype);  // of words, or of eight bytes

// Text of those that are called, for vectors of so many bytes:
//
//   tc_tile_float<rows, vectors, lane, step>(a, b, depth, c, ask)
//       c[i][l] = fma(a[i*lane + k*step], b[k][l], c[i][l]) for k ascending, with ask(k) before each: a program's loop
//       that is `multiplied` (tile/multiplied.h)
//   tc_turn_lines_float<width>(from, depth, to)
//       to[k][l] = from[l][k] for k < depth <= 64; from has as many rows of 64 as fill vectors (tile/square.h)
std::string tile_helpers(Calls& calls, int64_t vector);

}  // namespace tiny_compile
