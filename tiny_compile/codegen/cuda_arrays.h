// The arrays of a tile in CUDA C: of a thread, of a block, of a cluster.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_text.h"
#include "tiny_compile/codegen/tile_uses.h"
#include "tiny_compile/tile/chosen_places.h"

namespace tiny_compile {

// What the text of a tile is written from: all of it is decided before the first line.
struct CudaTile {
  CudaText& text;
  Text& out;
  const Tile& tile;
  const TileUses uses;
  const std::set<ChosenPlace> once;  // places that are asked about where they are chosen
  const bool notes_wrong;  // one out of range is noted, and told by the kernel's end; else told
                           // at once, by a branch that keeps what follows behind what is before
  const std::vector<int> awaited;  // arrays that blocks wait for, in the order of the text
  const int64_t asked;             // bytes of arrays that the launch gives
};

// Bytes of a block's arrays where they are more than a kernel may declare, which its launch gives then; else 0.
int64_t asked_bytes(const Tile& tile);

// float sum2[16];
// __shared__ alignas(16) float given0[512];
// and, where blocks of a cluster send each other elements, what counts them as they arrive.
void declare_arrays(const CudaTile& t);

bool is_kept(const Array& array);  // a thread's halves, two to a register

// "sum2[p + 8]", of a cluster in the block that has it.
std::string array_element(const CudaTile& t, int array, const Expr& index);
// Its value, in the compute type.
std::string read_array(const CudaTile& t, int array, const Expr& index);
// What an Element is: its own lane's, or another's.
std::string read_element(const CudaTile& t, const Scalar& element);

void write_send(const CudaTile& t, const Statement& s);
void write_await(const CudaTile& t, const Statement& s);

}  // namespace tiny_compile
