// Which of a block's rows go through shared memory.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_row_shape.h"

namespace tiny_compile {

// The rows of a block of what one load reads or one step stores: line * pitch + element.
struct StagedTile {
  int load = -1, step = -1;  // one of them
  DType type = DType::f32;
  Expr index;
  int buffer = -1;
  int axis = -1;        // of the elements
  int64_t count = 1;    // of the elements that the block holds
  int64_t pitch = 1;    // elements
  int64_t offset = 0;   // bytes
  int64_t first = 0;    // not across: where the first row's first element stands
  bool across = false;  // neighbours in memory: elements of neighbouring rows, or of one
  std::string name() const;
};

struct StagedRows {
  int64_t lines = 0;    // rows of a block; 0: nothing is staged
  int64_t bytes = 0;    // of shared memory
  bool shared = false;  // by the blocks of a cluster: each holds its elements, from `own` on
  int resident = 0;  // blocks that fit a multiprocessor; 0: as many as the compiler makes fit
  std::vector<StagedTile> tiles;
  int vector = 1;  // elements that a thread takes of a tile at once, in the pass at hand

  const char* place() const { return shared ? "e - own" : "e"; }  // in a tile's row
  bool holds(int load) const;
  const StagedTile* stored(int step) const;
};

// Decides, and gives the block as many rows.
StagedRows stage_rows(const CudaText& text, RowShape& shape);

// Whether a kernel for which columns would do runs along rows as well: strips suit both.
bool goes_in_strips(const CudaText& text);

}  // namespace tiny_compile
