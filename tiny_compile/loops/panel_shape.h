// How a product is cut on a CPU: blocks of rows and columns, which are panels of as many as registers hold the sums
// of, a few hundred steps of depth at a time.
//
//   1000 x 700 x 300, tiles down=12 across=32 panels_down=20 panels_across=8 depth=350
//     5 blocks of 240 rows x 2 of 256 columns; 2 times 350 steps
#pragma once

#include <string>

#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {

inline constexpr int64_t kMostKept = 1 << 20;  // integers that a thread keeps

struct PanelShape {
  DotAxes axes;
  DType type;                          // of the sums
  Expr rows, columns, depth, batches;  // counts
  Expr row_blocks, column_blocks;
  int64_t block_rows = 1, block_columns = 1;
  int64_t steps = 1;         // of a block of depth
  int64_t depth_blocks = 1;  // at most
  bool is_deep = false;      // more than one
  // Elements of a thread's memory: of packed columns; rows of one block, and how many blocks of them; sums between
  // blocks of depth.
  int64_t right = 0, left = 0, left_blocks = 0, sums = 0;

  Expr units() const { return batches * row_blocks * column_blocks; }
};

// Of a kernel that can be tiled, as its schedule says.
PanelShape panel_shape(const Kernel& kernel);

// "", or why its schedule is none for these tiles.
std::string why_illegal_panels(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
