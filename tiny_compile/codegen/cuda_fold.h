// Folds: what the rows of a block give to each column, added up while the block goes over them.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

bool folds_rows(const Kernel& kernel);

// Who has which of a block's rows: warp w the rows w*turns + 0 .. turns-1.
struct FoldShape {
  int warps = 1;      // of the block; a warp has one row at a time
  int64_t turns = 1;  // rows a warp
  int levels = 0;     // log2(turns): sums that wait for others
};
FoldShape fold_shape_of(const Kernel& kernel);

// Text: the row that a warp has in a turn.
std::string row_of_turn(const CudaText& text, const std::string& turn);

// Declares the block's sums and opens the loop over the rows of a warp.
void open_folds(CudaText& text);

// meeting[warp][column] holds what each warp's row gives: adds that to the sums so far.
void write_fold_sums(CudaText& text, const Step& step, int number);

}  // namespace tiny_compile
